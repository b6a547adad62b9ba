// SPDX-License-Identifier: MIT
// The time that a depthwise CUDA kernel by slabs should take, from its plan (family/cuda/channel_slice_plan.hpp).
#pragma once

#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "problem/problem.hpp"

namespace tilewise {

double predicted_slab_us(const Problem& problem, const KernelConfig& config, const ArchSpec& arch);

}  // namespace tilewise
