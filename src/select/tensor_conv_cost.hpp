// SPDX-License-Identifier: MIT
// The time that a convolution by the tensor copy engine (kernels/cuda/im2col_conv/im2col_conv.hpp) is expected to take.
#pragma once

#include "config/arch_spec.hpp"
#include "config/fit.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

double tensor_conv_us(const ProblemView& view, const KernelConfig& config, const ArchSpec& arch);

}  // namespace tilewise
