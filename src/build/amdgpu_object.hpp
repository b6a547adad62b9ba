// SPDX-License-Identifier: MIT
// A code object of an AMD GPU: an ELF file that says itself which chip it is for, which kernels it has and what each of them needs. It is
// read before it is loaded, since a driver's word about one that does not fit is a number.
#pragma once

#include <elf.h>

#include <string_view>

#include "base/json.hpp"
#include "base/result.hpp"
#include "build/kernel_resources.hpp"

namespace tilewise {

inline constexpr Elf64_Half kAmdGpuMachine = 224;  // EM_AMDGPU, which not every elf.h has

// That the file is such an object for this arch and has the kernel `tilewise_kernel`. The error names what it has and what it needs.
Status check_amdgpu_object(std::string_view file, std::string_view arch);

// The metadata of each kernel: a list of objects with keys such as ".name". An error where there is none or it cannot be read.
Result<Json> amdgpu_kernels(std::string_view file);

// From its metadata. Where a file has several kernels, the most that one of them needs. An error where there is no metadata or it
// cannot be read.
Result<KernelResources> amdgpu_resources(std::string_view file);

}  // namespace tilewise
