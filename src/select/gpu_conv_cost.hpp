// SPDX-License-Identifier: MIT
// The part of the GPU model (gpu_cost_model.hpp) that is about convolutions: each family of kernels has its own account.
#pragma once

#include "config/arch_spec.hpp"
#include "config/fit.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

double predicted_gpu_conv_us(const ProblemView& view, const KernelConfig& config, const ArchSpec& arch);

}  // namespace tilewise
