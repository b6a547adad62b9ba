// SPDX-License-Identifier: MIT
// How the work of a GPU kernel is cut into blocks, and the tensor maps its copies need.
#pragma once

#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "family/launch_plan.hpp"
#include "problem/facts.hpp"
#include "problem/problem.hpp"

namespace tilewise {

// Blocks of the second kernel, which adds up the sums in the workspace.
void add_reduction(GpuGrid& grid, const GemmView& gemm);

// Clusters of tiles side by side in the order they are taken, of so many that are computed at the same time.
int raster_group_of(const KernelConfig& config, std::int64_t resident);

// Stream-K: of the blocks there is place for, those that have work, where every tile is so many steps deep.
std::int64_t stream_blocks(std::int64_t tiles, std::int64_t steps, std::int64_t resident);

// Blocks for so many tiles of so many steps along k.
GpuGrid tile_grid(const KernelConfig& config, const ArchSpec& arch, std::int64_t tiles, std::int64_t steps);

std::optional<LaunchPlan> block_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch,
                                     int threads, Rejected* why);

}  // namespace tilewise
