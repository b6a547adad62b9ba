// SPDX-License-Identifier: MIT
#include "family/cuda/channel_slice_grid.hpp"

#include <algorithm>

#include "base/rounding.hpp"
#include "config/workspace.hpp"
#include "family/cuda/channel_slice_plan.hpp"
#include "family/gpu/depthwise_grid.hpp"
#include "kernels/common/channel_slice_args.hpp"
#include "kernels/common/to_int.hpp"

namespace tilewise {

std::optional<LaunchPlan> channel_slice_grid(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int,
                                             Rejected* why) {
    const auto plan = channel_slice_plan(p, c, arch, why);
    if (!plan) return std::nullopt;
    GpuGrid grid;
    grid.block = launch_spec(c, arch);
    grid.blocks = to_int(plan->tiles * ceil_div(p.conv.g, c.tile.n));
    grid.raster_group = std::max(1, c.raster_group);
    if (sums_in_workspace(c)) add_depthwise_reduction(grid, p, c.split_k, arch);
    const auto divisor = [](std::int64_t by) { return LaunchDivisor(static_cast<unsigned>(to_int(by))); };
    grid.block.shared_bytes = plan->shared_bytes;  // what is left serves the kernel after this one
    ChannelSliceArgs launch{};
    launch.images = to_int(plan->images), launch.rows = to_int(plan->rows);
    launch.slice_rows = to_int(plan->slice_rows), launch.columns = to_int(plan->columns);
    launch.channel_tiles = divisor(ceil_div(p.conv.g, c.tile.n)), launch.bands = divisor(plan->bands);
    launch.tile_images = divisor(plan->images), launch.segments = divisor(plan->segments);
    grid.family_args.set(launch);
    return grid;
}

}  // namespace tilewise
