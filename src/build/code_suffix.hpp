// SPDX-License-Identifier: MIT
// The kinds of code a kernel is built as, by the suffix of the file: a shared object (.so), a CUDA binary (.cubin), CUDA's
// portable assembly (.ptx), a CUDA kernel that the host runs (.emu). Requests name one; a device says which it loads
// (Device::code_suffix).
#pragma once

#include <string_view>
#include <vector>

#include "config/arch_spec.hpp"

namespace tilewise {

inline constexpr std::string_view kSharedObject = ".so";
inline constexpr std::string_view kCubin = ".cubin";
inline constexpr std::string_view kPtx = ".ptx";  // the driver compiles it, for any chip as new as the arch or newer
inline constexpr std::string_view kEmulatedCode =
    ".emu";  // a shared object of a CUDA kernel's source (emulated_source)

// What can be built for an arch: first what its own chips load; then what later chips load, where its code is not for one
// chip alone. A pack carries all of them.
std::vector<std::string_view> code_suffixes(const ArchSpec& arch);

}  // namespace tilewise
