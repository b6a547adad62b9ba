// SPDX-License-Identifier: MIT
#include "family/cuda/conv_grid.hpp"

#include <algorithm>

#include "base/rounding.hpp"
#include "config/conv_tiles.hpp"
#include "config/fit.hpp"
#include "config/workspace.hpp"
#include "family/cuda/block_grid.hpp"
#include "family/cuda/depthwise_grid.hpp"
#include "family/cuda/im2col_grid.hpp"
#include "kernels/common/col2im_conv_args.hpp"
#include "kernels/common/to_int.hpp"
#include "problem/facts.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {
namespace {

// Blocks for so many tiles of so many steps along k.
GpuGrid tile_grid(const KernelConfig& c, const ArchSpec& arch, std::int64_t tiles, std::int64_t steps) {
    GpuGrid plan;
    plan.block = launch_spec(c, arch);
    const std::int64_t cluster = std::int64_t{c.cluster.m} * c.cluster.n;
    const std::int64_t resident = std::int64_t{arch.units} * c.blocks_per_unit / cluster * cluster;
    plan.blocks = to_int(c.stream_k != StreamK::off ? stream_blocks(tiles, steps, resident)
                         : c.persistent             ? std::min(tiles, resident)
                                                    : tiles);
    plan.raster_group = std::max(1, c.raster_group);
    return plan;
}

}  // namespace

std::optional<LaunchPlan> gather_grid(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int, Rejected*) {
    const GemmView gemm = gemm_view(p);
    const std::int64_t steps = ceil_div(gathered_view(p, gemm, c).k, c.tile.k);
    GpuGrid plan = tile_grid(c, arch, gather_conv_tiles(p, gemm, c), steps);
    if (sums_in_workspace(c)) add_reduction(plan, gemm_view(p));
    if (c.explicit_gemm) {
        // Any number does: each walks over what is left.
        constexpr int kExpandThreads = 256, kBlocksPerUnit = 8;
        plan.pack_threads = kExpandThreads;
        plan.pack_blocks = kBlocksPerUnit * arch.units;
    }
    return plan;
}

std::optional<LaunchPlan> im2col_grid(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int, Rejected*) {
    const GemmView gemm = gemm_view(p);
    GpuGrid plan = tile_grid(c, arch, tensor_conv_tiles(p, gemm, c), tensor_conv_steps(p, gemm, c));
    const std::int64_t cluster = std::int64_t{c.cluster.m} * c.cluster.n;
    plan.raster_group = raster_group_of(c, std::int64_t{arch.units} * c.blocks_per_unit / cluster);
    if (sums_in_workspace(c)) add_reduction(plan, gemm_view(p));
    plan.tensor_maps = tensor_conv_maps(p, c, plan.block);
    return plan;
}

std::optional<LaunchPlan> col2im_grid(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int, Rejected*) {
    constexpr int kSumThreads = 128;
    constexpr std::int64_t kMostBlocks = 65536;  // further results are walked over
    const GemmView view = columns_view(p);
    GpuGrid plan = tile_grid(c, arch, column_conv_tiles(p, c), ceil_div(view.k, c.tile.k));
    plan.raster_group = raster_group_of(c, arch.units);
    plan.product = view;
    const Col2imConvArgs args = col2im_conv_args(kernel_conv(p));
    plan.family_args.set(args);
    const std::int64_t results = product(p.conv.in) * p.conv.n * p.conv.c;
    plan.reduce_threads = kSumThreads;
    plan.reduce_blocks = to_int(std::min(ceil_div(results / args.vector, kSumThreads), kMostBlocks));
    return plan;
}

std::optional<LaunchPlan> depthwise_grid(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int,
                                         Rejected*) {
    GpuGrid plan = tile_grid(c, arch, depthwise_blocks(p, c, arch), ceil_div(gemm_view(p).k, c.tile.k));
    set_depthwise_geometry(plan, p, c, arch);
    if (sums_in_workspace(c)) add_depthwise_reduction(plan, p, c.split_k, arch);
    return plan;
}

}  // namespace tilewise
