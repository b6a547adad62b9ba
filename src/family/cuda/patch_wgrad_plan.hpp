// SPDX-License-Identifier: MIT
// How backward weight by patches (gather=halo, kernels/cuda/patch_wgrad/patch_wgrad.hpp) is cut for a problem: the tile of output
// pixels that is staged at a time, and the parts of the reduction. What is fitted, how much workspace that takes and the launch all
// follow from one plan. A config that says two_stage and no split_k leaves the number of parts to it; with cluster_k that is the
// number of clusters, each of split_k parts.
#pragma once

#include <cstdint>
#include <optional>

#include "base/rejected.hpp"
#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "family/launch_plan.hpp"
#include "kernels/common/patch_wgrad_args.hpp"
#include "problem/problem.hpp"

namespace tilewise {

struct PatchWgradPlan {
    PatchTile tile;
    PatchWgradArgs shape;   // of the block with most rows
    std::int64_t patches;   // tiles of the problem
    std::int64_t products;  // blocks of each part
    int parts;
    double cycles;  // of a unit, for everything, by what is computed and copied
};

// Parts of a reduction are as long as the longest, and each adds a pass over the results, so that of the numbers that leave so many steps to
// it only the least counts: the next one that leaves fewer, a multiple of `together`. None where one step is left.
std::optional<int> next_parts(std::int64_t steps, int parts, int together);

// Products that are so many times as many blocks as a launch can have.
bool refuses_blocks(std::int64_t products, int parts, Rejected* out);

// The plan of a config of the family patch_wgrad; none where it does not fit the problem, and `why` then says so.
std::optional<PatchWgradPlan> patch_wgrad_plan(const Problem& problem, const KernelConfig& config, const ArchSpec& arch,
                                               Rejected* why = nullptr);

// Chunks of channels that a block stages for each pixel; none of x where these are few and come one by one.
struct PatchWgradChunks {
    int x, y;
};
PatchWgradChunks patch_wgrad_chunks(const KernelConv& conv, const KernelConfig& config);

// Blocks of each part, whatever the tile.
std::int64_t patch_wgrad_products(const KernelConv& conv, const KernelConfig& config);

// The plan that a launch was made from.
PatchWgradPlan patch_wgrad_plan_of(const GpuGrid& grid);

}  // namespace tilewise
