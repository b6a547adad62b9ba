// SPDX-License-Identifier: MIT
// The version of the library; CMakeLists.txt states the number.
#pragma once

#include <string_view>

namespace tilewise {

std::string_view version();

}  // namespace tilewise
