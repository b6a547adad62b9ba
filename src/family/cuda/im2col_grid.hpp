// SPDX-License-Identifier: MIT
// The blocks of convolutions whose operands the copy engine fetches (kernels/cuda/im2col_conv/im2col_conv.hpp), and their tensor maps.
#pragma once

#include "family/launch_plan.hpp"

namespace tilewise {

std::optional<LaunchPlan> im2col_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch,
                                      int threads, Rejected* why);

}  // namespace tilewise
