// SPDX-License-Identifier: MIT
// Reading whole files, with errors that name the path and the reason.
#pragma once

#include <string>

#include "base/result.hpp"

namespace tilewise {

Result<std::string> read_file(const std::string& path);

}  // namespace tilewise
