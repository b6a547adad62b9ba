// SPDX-License-Identifier: MIT
#include "run/halo_first_grid.hpp"

#include <cstring>

#include "config/halo_first_plan.hpp"

namespace tilewise {

LaunchGeometry halo_first_grid(const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    LaunchGeometry geometry;
    geometry.block = launch_spec(c, arch);
    const auto plan = halo_first_plan(p, c, arch);
    if (!plan) return geometry;  // no blocks: fit refuses such a problem
    geometry.blocks = plan->blocks;
    geometry.block.shared_bytes = plan->launch.total_bytes;
    std::memcpy(geometry.geometry.data(), &plan->launch, sizeof plan->launch);
    return geometry;
}

}  // namespace tilewise
