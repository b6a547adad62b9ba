// SPDX-License-Identifier: MIT
// The source of a CUDA convolution kernel: which template of kernels/cuda a config is an instance of, and what the instance
// says beyond what a GEMM does.
#pragma once

#include <string>

#include "codegen/conv_family.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

bool has_cuda_conv_template(const KernelConfig& config);

// Of a config that has a template: its header in kernels/cuda without the extension; upper-case, it is the macro's name.
std::string cuda_conv_template(const KernelConfig& config);
// Lines of the config's struct.
std::string cuda_conv_lines(const KernelConfig& config);

}  // namespace tilewise
