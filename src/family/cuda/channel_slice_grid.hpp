// SPDX-License-Identifier: MIT
// The launch of a depthwise CUDA kernel by slices of channels, from its plan (family/cuda/channel_slice_plan.hpp).
#pragma once

#include "base/rejected.hpp"
#include "config/kernel_config.hpp"
#include "family/launch_plan.hpp"
#include "problem/problem.hpp"

namespace tilewise {

std::optional<LaunchPlan> channel_slice_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch,
                                             int threads, Rejected* why);

}  // namespace tilewise
