// SPDX-License-Identifier: MIT
// The launch of backward weight by shifted runs of positions (kernels/cuda/shifted_wgrad/shifted_wgrad.hpp), as its plan says.
#pragma once

#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "family/launch_plan.hpp"
#include "problem/problem.hpp"

namespace tilewise {

std::optional<LaunchPlan> shifted_wgrad_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch,
                                             int threads, Rejected* why);

}  // namespace tilewise
