// SPDX-License-Identifier: MIT
// How backward weight by patches is launched: a block for every part of the reduction and every tile of the results.
#pragma once

#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "family/launch_plan.hpp"
#include "problem/problem.hpp"

namespace tilewise {

// The second kernel, as reduce_many.hpp shares out the sums of so many parts.
void add_many_reduction(GpuGrid& grid, const Problem& problem, int parts);

// The launch of a config of the family patch_wgrad that fits the problem.
std::optional<LaunchPlan> patch_wgrad_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch,
                                           int threads, Rejected* why);

}  // namespace tilewise
