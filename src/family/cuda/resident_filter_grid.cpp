// SPDX-License-Identifier: MIT
#include "family/cuda/resident_filter_grid.hpp"

#include "family/cuda/resident_filter_plan.hpp"
#include "family/cuda/shifted_positions.hpp"
#include "kernels/common/to_int.hpp"
#include "problem/facts.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {
namespace {

// `steps` products along a line.
TensorMapSpec pixel_lines(const Problem& p, const KernelConfig& c, const ResidentFilterConvArgs& shape, int steps) {
    const KernelConv conv = kernel_conv(p);
    const bool backward = p.op == Op::conv_bwd_data;
    TapWalk walk;
    for (std::size_t d = 0; d < kMaxKernelDims; ++d) {
        walk.extent[d] = shape.extent[d], walk.step[d] = backward ? 1 : conv.stride[d], walk.before[d] = shape.pad[d];
    }
    TensorMapSpec map = walked_positions(p, !backward, walk);
    map.operand = 0;
    map.box = {shape.slot_lines / c.cluster.n, resident_filter_line_bytes(steps) / to_int(bytes_of(c.dtype))};
    return map;
}

}  // namespace

std::optional<LaunchPlan> resident_filter_grid(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int,
                                               Rejected* why) {
    GpuGrid grid;
    grid.block = launch_spec(c, arch);
    const auto plan = resident_filter_plan(p, c, arch, why);
    if (!plan) return std::nullopt;
    grid.blocks = plan->blocks;
    grid.family_args.set(plan->shape);
    grid.tensor_maps = TensorMaps{pixel_lines(p, c, plan->shape, kResidentFilterFullSteps),
                                  pixel_lines(p, c, plan->shape, plan->shape.last_steps), TensorMapSpec{}};
    return grid;
}

}  // namespace tilewise
