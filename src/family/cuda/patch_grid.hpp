// SPDX-License-Identifier: MIT
// How the work of patch_conv and patch_box_conv is cut into blocks: the tile of pixels, the shared memory it takes, and as many
// blocks as the device holds, which walk over the tiles.
#pragma once

#include "base/rejected.hpp"
#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "family/launch_plan.hpp"
#include "problem/problem.hpp"

namespace tilewise {

std::optional<LaunchPlan> patch_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch,
                                     int threads, Rejected* why);

}  // namespace tilewise
