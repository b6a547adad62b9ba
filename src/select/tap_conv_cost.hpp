// SPDX-License-Identifier: MIT
// The time that forward and backward data with all weights in shared memory
// (kernels/cuda/resident_filter_conv/resident_filter_conv.hpp) are expected to take.
#pragma once

#include "config/arch_spec.hpp"
#include "config/fit.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

double tap_conv_us(const ProblemView& view, const KernelConfig& config, const ArchSpec& arch);

}  // namespace tilewise
