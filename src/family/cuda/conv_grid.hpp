// SPDX-License-Identifier: MIT
// The blocks of convolutions whose tiles are counted like those of a product: gathered, walked over by the copy engine, depthwise;
// and of patches.
#pragma once

#include "family/launch_plan.hpp"

namespace tilewise {

LaunchPlan gather_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch, int threads);
LaunchPlan im2col_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch, int threads);
LaunchPlan patch_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch, int threads);
LaunchPlan depthwise_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch, int threads);

}  // namespace tilewise
