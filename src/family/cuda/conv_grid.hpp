// SPDX-License-Identifier: MIT
// The blocks of convolutions whose tiles are counted like those of a product: gathered, walked over by the copy engine, by columns,
// depthwise.
#pragma once

#include "family/launch_plan.hpp"

namespace tilewise {

std::optional<LaunchPlan> gather_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch,
                                      int threads, Rejected* why);
std::optional<LaunchPlan> im2col_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch,
                                      int threads, Rejected* why);
std::optional<LaunchPlan> col2im_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch,
                                      int threads, Rejected* why);
std::optional<LaunchPlan> depthwise_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch,
                                         int threads, Rejected* why);

}  // namespace tilewise
