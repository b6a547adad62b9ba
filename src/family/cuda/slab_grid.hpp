// SPDX-License-Identifier: MIT
// The launch of a depthwise CUDA kernel by slabs, from its plan (config/slab_plan.hpp).
#pragma once

#include "config/kernel_config.hpp"
#include "family/launch_plan.hpp"
#include "problem/problem.hpp"

namespace tilewise {

std::int64_t slab_blocks(const Problem& problem, const KernelConfig& config, const ArchSpec& arch);

// What the kernel is told of it (kernels/common/slab_launch.hpp).
void set_slab_geometry(LaunchPlan& geometry, const Problem& problem, const KernelConfig& config, const ArchSpec& arch);

}  // namespace tilewise
