// SPDX-License-Identifier: MIT
#include "family/cuda/shifted_wgrad_grid.hpp"

#include "family/cuda/patch_wgrad_grid.hpp"
#include "family/cuda/shifted_positions.hpp"
#include "family/cuda/shifted_wgrad_plan.hpp"
#include "kernels/common/to_int.hpp"
#include "problem/facts.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {
namespace {

// Those of dy from the first pixel on, those of x from what the filter reaches before it.
TensorMapSpec positions_of(const Problem& p, const KernelConfig& c, const ShiftedWgradArgs& shape, bool is_x) {
    const KernelConv conv = kernel_conv(p);
    TapWalk walk;
    for (std::size_t d = 0; d < kMaxKernelDims; ++d) {
        walk.extent[d] = shape.extent[d];
        walk.step[d] = is_x ? conv.stride[d] : 1, walk.before[d] = is_x ? conv.pad[d] : 0;
    }
    TensorMapSpec map = walked_positions(p, is_x, walk);
    const int bytes = to_int(bytes_of(c.dtype));
    map.box = is_x ? TensorBox{shape.box_lines, shape.line}
                   : TensorBox{c.tile.k, shifted_wgrad_line_bytes(shifted_wgrad_columns(c)) / bytes};
    return map;
}

}  // namespace

std::optional<LaunchPlan> shifted_wgrad_grid(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int,
                                             Rejected* why) {
    GpuGrid grid;
    grid.block = launch_spec(c, arch);
    const auto plan = shifted_wgrad_plan(p, c, arch, why);
    if (!plan) return std::nullopt;
    grid.blocks = to_int(plan->products * plan->parts);
    grid.split_k = plan->parts;
    grid.family_args.set(plan->shape);
    grid.tensor_maps =
        TensorMaps{positions_of(p, c, plan->shape, false), positions_of(p, c, plan->shape, true), TensorMapSpec{}};
    if (c.two_stage) add_many_reduction(grid, p, plan->parts / plan->shape.together);
    return grid;
}

}  // namespace tilewise
