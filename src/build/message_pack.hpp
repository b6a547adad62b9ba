// SPDX-License-Identifier: MIT
// Reads MessagePack, the form of the metadata in code objects, into a JSON value: maps with text keys, arrays, text, whole numbers,
// truth values and nothing. Other forms are errors.
#pragma once

#include <string_view>

#include "base/json.hpp"
#include "base/result.hpp"

namespace tilewise {

Result<Json> read_message_pack(std::string_view bytes);

}  // namespace tilewise
