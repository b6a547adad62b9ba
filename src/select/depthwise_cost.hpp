// SPDX-License-Identifier: MIT
// The part of the GPU model that is about depthwise kernels (family/cuda/depthwise_spec.hpp): what a unit's warps issue, against what
// memory takes.
#pragma once

#include "config/arch_spec.hpp"
#include "config/fit.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

double predicted_depthwise_us(const ProblemView& view, const KernelConfig& config, const ArchSpec& arch);

}  // namespace tilewise
