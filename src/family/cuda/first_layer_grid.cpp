// SPDX-License-Identifier: MIT
#include "family/cuda/first_layer_grid.hpp"

#include "family/cuda/first_layer_plan.hpp"

namespace tilewise {

std::optional<LaunchPlan> first_layer_grid(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int,
                                           Rejected* why) {
    GpuGrid grid;
    grid.block = launch_spec(c, arch);
    const auto plan = first_layer_plan(p, c, arch, why);
    if (!plan) return std::nullopt;
    grid.blocks = plan->blocks;
    grid.block.shared_bytes = plan->launch.total_bytes;
    grid.family_args.set(plan->launch);
    return grid;
}

}  // namespace tilewise
