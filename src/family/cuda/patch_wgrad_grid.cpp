// SPDX-License-Identifier: MIT
#include "family/cuda/patch_wgrad_grid.hpp"

#include <algorithm>

#include "family/cuda/patch_wgrad_plan.hpp"
#include "kernels/common/few_parts.hpp"
#include "kernels/common/to_int.hpp"
#include "problem/facts.hpp"

namespace tilewise {

void add_many_reduction(GpuGrid& grid, const Problem& p, int parts) {
    constexpr int kReduceThreads = 256;
    const std::int64_t block_sums = parts <= kFewParts ? kFewRun * kReduceThreads : 16 * kReduceThreads / 32;
    constexpr std::int64_t kMostBlocks = 65536;
    const GemmView gemm = gemm_view(p);
    const std::int64_t sums = gemm.m * gemm.n * gemm.batch;
    grid.reduce_threads = kReduceThreads;
    grid.reduce_blocks = to_int(std::min(kMostBlocks, (sums + block_sums - 1) / block_sums));
}

std::optional<LaunchPlan> patch_wgrad_grid(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int,
                                           Rejected* why) {
    GpuGrid grid;
    grid.block = launch_spec(c, arch);
    const auto plan = patch_wgrad_plan(p, c, arch, why);
    if (!plan) return std::nullopt;
    grid.blocks = to_int(plan->products * plan->parts);
    grid.split_k = plan->parts;
    const PatchTile& tile = plan->tile;
    grid.patch = {tile.images, tile.extent[0], tile.extent[1], tile.extent[2]};
    grid.family_args.set(plan->shape);
    if (c.two_stage) add_many_reduction(grid, p, plan->parts / plan->shape.together);
    return grid;
}

}  // namespace tilewise
