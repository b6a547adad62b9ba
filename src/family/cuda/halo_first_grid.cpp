// SPDX-License-Identifier: MIT
#include "family/cuda/halo_first_grid.hpp"

#include <cstring>

#include "config/halo_first_plan.hpp"

namespace tilewise {

LaunchPlan halo_first_grid(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int) {
    LaunchPlan geometry;
    geometry.block = launch_spec(c, arch);
    const auto plan = halo_first_plan(p, c, arch);
    if (!plan) return geometry;  // no blocks: fit refuses such a problem
    geometry.blocks = plan->blocks;
    geometry.block.shared_bytes = plan->launch.total_bytes;
    std::memcpy(geometry.geometry.data(), &plan->launch, sizeof plan->launch);
    return geometry;
}

}  // namespace tilewise
