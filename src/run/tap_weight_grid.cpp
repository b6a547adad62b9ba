// SPDX-License-Identifier: MIT
#include "run/tap_weight_grid.hpp"

#include <cstring>

#include "config/tap_weight_plan.hpp"
#include "problem/facts.hpp"
#include "problem/kernel_conv.hpp"
#include "run/halo_weight_grid.hpp"

namespace tilewise {
namespace {

// Channels of all groups at every position: those of dy from the first pixel on, those of x from what the filter reaches before it.
TensorMapSpec positions_of(const Problem& p, const KernelConfig& c, const TapWeightShape& shape, bool is_x) {
    const KernelConv conv = kernel_conv(p);
    const std::int64_t channels = is_x ? p.conv.c : p.conv.k, bytes = bytes_of(c.dtype);
    const auto& size = is_x ? conv.in : conv.out;
    TensorMapSpec map;
    map.dtype = c.dtype;
    map.size = {channels, size[0] * size[1] * size[2], p.conv.n};
    map.stride_bytes = {channels * bytes, map.size[1] * channels * bytes};
    Im2colSpec im2col;
    im2col.dims = p.conv.in.rank;
    for (int i = 0; i < im2col.dims; ++i) {  // innermost first
        const int d = kMaxKernelDims - 1 - i;
        const auto at = static_cast<std::size_t>(i);
        im2col.size[at] = size[d], im2col.step[at] = is_x ? conv.stride[d] : 1;
        im2col.lower[at] = is_x ? -conv.pad[d] : 0;
        im2col.upper[at] = im2col.lower[at] + (shape.extent[d] - 1) * im2col.step[at] - (size[d] - 1);
    }
    map.im2col = im2col;
    map.box = is_x ? TensorBox{shape.box_lines, shape.line}
                   : TensorBox{c.tile.k, static_cast<int>(tap_weight_line_bytes(tap_weight_columns(c)) / bytes)};
    return map;
}

}  // namespace

LaunchGeometry tap_weight_grid(const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    LaunchGeometry geometry;
    geometry.block = launch_spec(c, arch);
    const auto plan = tap_weight_plan(p, c, arch);
    if (!plan) return geometry;  // no blocks: fit refuses such a problem
    geometry.blocks = static_cast<int>(plan->products * plan->parts);
    geometry.split_k = plan->parts;
    std::memcpy(geometry.geometry.data(), &plan->shape, sizeof plan->shape);
    geometry.tensor_maps = {positions_of(p, c, plan->shape, false), positions_of(p, c, plan->shape, true),
                            TensorMapSpec{}};
    if (c.two_stage) add_many_reduction(geometry, p, plan->parts / plan->shape.together);
    return geometry;
}

}  // namespace tilewise
