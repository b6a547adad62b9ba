// SPDX-License-Identifier: MIT
// The kinds of code a kernel is built as, by the suffix of the file: a shared object (.so), a CUDA binary (.cubin), CUDA's
// portable assembly (.ptx), a HIP binary (.hsaco), a GPU kernel that the host runs (.emu). Requests name one; a device says which it loads
// (Device::code_suffix). An extension (.ext) is no kernel but a client's own C++, such as the ops for PyTorch.
#pragma once

#include <string_view>
#include <vector>

#include "config/arch_spec.hpp"

namespace tilewise {

inline constexpr std::string_view kSharedObject = ".so";
inline constexpr std::string_view kCubin = ".cubin";
inline constexpr std::string_view kPtx = ".ptx";  // the driver compiles it, for any chip as new as the arch or newer
inline constexpr std::string_view kHsaco = ".hsaco";
inline constexpr std::string_view kEmulatedCode = ".emu";  // a shared object of a GPU kernel's source (emulated_source)
inline constexpr std::string_view kExtension = ".ext";     // a shared object with the C++ library, of any headers

// The code of a backend's kernels; which compiler builds a suffix is in compile.cpp.
struct BackendCode {
    std::string_view suffix;      // what an arch's own chips load
    std::string_view portable{};  // what later chips load, too; empty: nothing
    bool (*is_portable)(std::string_view arch) = nullptr;
};
const BackendCode& code_of(Backend backend);

// Lists what can be built for an arch: first what its own chips load; then what later chips load, where its code is not for one
// chip alone. A pack carries all of them.
std::vector<std::string_view> code_suffixes(const ArchSpec& arch);

}  // namespace tilewise
