// SPDX-License-Identifier: MIT
// The source of a GPU kernel: a struct of constants, and the macro of the family's template.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "problem/chain.hpp"

namespace tilewise {

struct GpuTemplate {
    std::string_view
        header;  // in kernels/, without the extension; its folder (gpu, cuda, hip) and its name are the macro's
    std::string_view second_kernel{};  // the line of the kernel that adds up parts, where they meet in the workspace
};
inline constexpr std::string_view kReduceLine = "TILEWISE_GPU_REDUCE(Config)\n";

// `lines` are those of the family's own constants.
std::string gpu_source(const GpuTemplate& from, const KernelConfig& config, const ArchSpec& arch,
                       std::string_view lines = "");

// The first line of every kernel's source: the chain that it is compiled for, or any.
std::string chain_line(const std::optional<Chain>& chain);

// The source for a device that emulates a GPU of the backend on the host.
std::string emulated_source(const std::string& source, Backend backend);

}  // namespace tilewise
