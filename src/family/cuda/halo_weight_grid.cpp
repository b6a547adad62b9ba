// SPDX-License-Identifier: MIT
#include "family/cuda/halo_weight_grid.hpp"

#include <algorithm>
#include <cstring>

#include "config/halo_weight_plan.hpp"
#include "kernels/common/to_int.hpp"
#include "problem/facts.hpp"

namespace tilewise {

void add_many_reduction(LaunchPlan& geometry, const Problem& p, int parts) {
    constexpr int kReduceThreads = 256;
    const std::int64_t block_sums = parts <= kFewParts ? kFewRun * kReduceThreads : 16 * kReduceThreads / 32;
    constexpr std::int64_t kMostBlocks = 65536;
    const GemmView gemm = gemm_view(p);
    const std::int64_t sums = gemm.m * gemm.n * gemm.batch;
    geometry.reduce_threads = kReduceThreads;
    geometry.reduce_blocks = to_int(std::min(kMostBlocks, (sums + block_sums - 1) / block_sums));
}

LaunchPlan halo_weight_grid(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int) {
    LaunchPlan geometry;
    geometry.block = launch_spec(c, arch);
    const auto plan = halo_weight_plan(p, c, arch);
    if (!plan) return geometry;  // no blocks: fit refuses such a problem
    geometry.blocks = to_int(plan->products * plan->parts);
    geometry.split_k = plan->parts;
    const HaloTile& tile = plan->tile;
    geometry.patch = {tile.images, tile.extent[0], tile.extent[1], tile.extent[2]};
    static_assert(sizeof plan->shape <= sizeof geometry.geometry);
    std::memcpy(geometry.geometry.data(), &plan->shape, sizeof plan->shape);
    if (c.two_stage) add_many_reduction(geometry, p, plan->parts / plan->shape.together);
    return geometry;
}

}  // namespace tilewise
