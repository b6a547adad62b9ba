// SPDX-License-Identifier: MIT
#include "family/gpu/conv_grid.hpp"

#include "base/rounding.hpp"
#include "config/conv_tiles.hpp"
#include "config/fit.hpp"
#include "config/workspace.hpp"
#include "family/gpu/block_grid.hpp"
#include "family/gpu/depthwise_grid.hpp"
#include "problem/facts.hpp"

namespace tilewise {

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

std::optional<LaunchPlan> depthwise_grid(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int,
                                         Rejected*) {
    GpuGrid plan = tile_grid(c, arch, depthwise_blocks(p, c, arch), ceil_div(gemm_view(p).k, c.tile.k));
    set_depthwise_geometry(plan, p, c, arch);
    if (sums_in_workspace(c)) add_depthwise_reduction(plan, p, c.split_k, arch);
    return plan;
}

}  // namespace tilewise
