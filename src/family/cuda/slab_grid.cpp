// SPDX-License-Identifier: MIT
#include "family/cuda/slab_grid.hpp"

#include <cstring>

#include "base/rounding.hpp"
#include "config/slab_plan.hpp"
#include "kernels/common/slab_launch.hpp"
#include "kernels/common/to_int.hpp"

namespace tilewise {

std::int64_t slab_blocks(const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    const auto plan = slab_plan(p, c, arch);
    return plan ? plan->tiles * divide_up(p.conv.g, c.tile.n) : 0;
}

void set_slab_geometry(LaunchPlan& geometry, const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    const auto plan = slab_plan(p, c, arch);
    if (!plan) return;  // a problem that does not fit is not launched
    const auto divisor = [](std::int64_t by) { return LaunchDivisor(static_cast<unsigned>(to_int(by))); };
    geometry.block.shared_bytes = plan->shared_bytes;  // what is left serves the kernel after this one
    SlabLaunch launch{};
    launch.images = to_int(plan->images), launch.rows = to_int(plan->rows);
    launch.slab_rows = to_int(plan->slab_rows), launch.columns = to_int(plan->columns);
    launch.channel_tiles = divisor(divide_up(p.conv.g, c.tile.n)), launch.bands = divisor(plan->bands);
    launch.tile_images = divisor(plan->images), launch.segments = divisor(plan->segments);
    static_assert(sizeof launch <= sizeof geometry.geometry);
    std::memcpy(geometry.geometry.data(), &launch, sizeof launch);
}

}  // namespace tilewise
