// SPDX-License-Identifier: MIT
// The kernels compiled into the library, for machines without a compiler: a pack like any other, in memory. The builder
// looks in it after the packs that the user names.
#pragma once

#include <string_view>

#include "build/pack.hpp"

namespace tilewise {

// The bytes. Empty in the core; the library and the command line are linked with another definition, which CMake writes
// from cmake/builtin_pack.cpp.in once the core has compiled the kernels (-DTILEWISE_ARCHS=... says for which archs).
std::string_view builtin_pack_bytes();

// Read at the first call. Without kernels in it when there are none, or when they are not of this library.
const Pack& builtin_pack();

}  // namespace tilewise
