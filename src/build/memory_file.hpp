// SPDX-License-Identifier: MIT
// A file without a disk, for loading a kernel when no folder can be written.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace tilewise {

// A path that can be loaded in this process, for as long as it lives. The same digest gives the same path.
Result<std::string> memory_file(const std::string& digest, std::string_view contents);
bool is_memory_file(std::string_view path);

}  // namespace tilewise
