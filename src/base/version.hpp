// SPDX-License-Identifier: MIT
// The version of the library; CMakeLists.txt states the number. In the library and the command, which are linked with a source from
// cmake/commit.cmake, the commit follows: 0.2.0+g0123456789ab, with .dirty behind it where files were changed.
#pragma once

#include <string_view>

namespace tilewise {

std::string_view version();

}  // namespace tilewise
