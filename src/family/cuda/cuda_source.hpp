// SPDX-License-Identifier: MIT
// The source of a CUDA kernel: a struct of constants, and the macro of the family's template.
#pragma once

#include <string>
#include <string_view>

#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

struct CudaTemplate {
    std::string_view name;  // its header in kernels/cuda without the extension; upper-case, it is the macro's name
    std::string_view second_kernel{};  // the line of the kernel that adds up parts, where they meet in the workspace
};
inline constexpr std::string_view kReduceLine = "TILEWISE_CUDA_REDUCE(Config)\n";

// `lines` are those of the family's own constants.
std::string cuda_source(const CudaTemplate& from, const KernelConfig& config, const ArchSpec& arch,
                        std::string_view lines = "");

// The same for a device that emulates the GPU on the host.
std::string emulated_source(const std::string& cuda_source);

}  // namespace tilewise
