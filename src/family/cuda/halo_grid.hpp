// SPDX-License-Identifier: MIT
// How the work of a halo kernel (gather=halo) is cut into blocks: the tile of pixels, the shared memory it takes, and as many
// blocks as the device holds, which walk over the tiles.
#pragma once

#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "family/launch_plan.hpp"
#include "problem/problem.hpp"

namespace tilewise {

// Fills in blocks, patch and shared memory; the problem fits the kernel.
void set_halo_grid(LaunchPlan& geometry, const Problem& problem, const KernelConfig& config, const ArchSpec& arch);

}  // namespace tilewise
