// SPDX-License-Identifier: MIT
// The time that forward and backward data by patches in shared memory (kernels/cuda/patch_conv/patch_conv.hpp) are expected to take.
#pragma once

#include "config/arch_spec.hpp"
#include "config/fit.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

double halo_conv_us(const ProblemView& view, const KernelConfig& config, const ArchSpec& arch);

}  // namespace tilewise
