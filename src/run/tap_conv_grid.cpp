// SPDX-License-Identifier: MIT
#include "run/tap_conv_grid.hpp"

#include <cstring>

#include "config/tap_conv_plan.hpp"
#include "problem/facts.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {
namespace {

// Channels of all groups at every position; `steps` products along a line.
TensorMapSpec pixel_lines(const Problem& p, const KernelConfig& c, const TapConvShape& shape, int steps) {
    const KernelConv conv = kernel_conv(p);
    const bool backward = p.op == Op::conv_bwd_data;
    const std::int64_t channels = backward ? p.conv.k : p.conv.c, bytes = bytes_of(c.dtype);
    const auto& size = backward ? conv.out : conv.in;
    TensorMapSpec map;
    map.dtype = c.dtype, map.operand = 0;
    map.size = {channels, size[0] * size[1] * size[2], p.conv.n};
    map.stride_bytes = {channels * bytes, map.size[1] * channels * bytes};
    Im2colSpec im2col;
    im2col.dims = p.conv.in.rank;
    for (int i = 0; i < im2col.dims; ++i) {  // innermost first
        const int d = kMaxKernelDims - 1 - i;
        const auto at = static_cast<std::size_t>(i);
        im2col.size[at] = size[d], im2col.step[at] = backward ? 1 : conv.stride[d];
        im2col.lower[at] = -shape.pad[d];
        im2col.upper[at] = im2col.lower[at] + (shape.extent[d] - 1) * im2col.step[at] - (size[d] - 1);
    }
    map.im2col = im2col;
    map.box = {shape.slot_lines / c.cluster.n, static_cast<int>(tap_conv_line_bytes(steps) / bytes)};
    return map;
}

}  // namespace

LaunchGeometry tap_conv_grid(const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    LaunchGeometry geometry;
    geometry.block = launch_spec(c, arch);
    const auto plan = tap_conv_plan(p, c, arch);
    if (!plan) return geometry;  // no blocks: fit refuses such a problem
    geometry.blocks = plan->blocks;
    std::memcpy(geometry.geometry.data(), &plan->shape, sizeof plan->shape);
    geometry.tensor_maps = {pixel_lines(p, c, plan->shape, kTapConvFullSteps),
                            pixel_lines(p, c, plan->shape, plan->shape.last_steps), TensorMapSpec{}};
    return geometry;
}

}  // namespace tilewise
