// SPDX-License-Identifier: MIT
// The blocks of convolutions that gather, and of depthwise ones, whose tiles are counted like those of a product.
#pragma once

#include "family/launch_plan.hpp"

namespace tilewise {

std::optional<LaunchPlan> gather_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch,
                                      int threads, Rejected* why);
std::optional<LaunchPlan> depthwise_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch,
                                         int threads, Rejected* why);

}  // namespace tilewise
