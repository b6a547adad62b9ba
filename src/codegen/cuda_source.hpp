// SPDX-License-Identifier: MIT
// The source of a CUDA kernel: which template of kernels/cuda a config is an instance of, and the instance.
#pragma once

#include <string>

#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

bool has_cuda_template(const KernelConfig& config);

// Of a config that has a template.
std::string cuda_source(const KernelConfig& config, const ArchSpec& arch);

// The same kernel for the host's compiler: the twins of the instructions (kernels/emulate) come first and take their places.
std::string emulated_source(const std::string& cuda_source);

}  // namespace tilewise
