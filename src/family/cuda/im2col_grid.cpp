// SPDX-License-Identifier: MIT
#include "family/cuda/im2col_grid.hpp"

#include "config/conv_tiles.hpp"
#include "config/geometry.hpp"
#include "config/im2col.hpp"
#include "config/workspace.hpp"
#include "family/gpu/block_grid.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

struct Activation {
    std::int64_t channels = 1, pixels = 1;  // of all groups; of an image
};
Activation activation(const Problem& p, int operand) {
    const bool is_x = is_input(p.op, operand);
    return {is_x ? p.conv.c : p.conv.k, product(is_x ? p.conv.in : output_size(p.conv))};
}

// Pixels of all images as the rows of a matrix for each group.
TensorMapSpec pixel_rows(const Problem& p, int operand, std::int64_t bytes) {
    const Activation a = activation(p, operand);
    const std::int64_t own = a.channels / p.conv.g;
    TensorMapSpec map;
    map.size = {own, a.pixels * p.conv.n, p.conv.g};
    map.stride_bytes = {a.channels * bytes, own * bytes};
    return map;
}

TensorMapSpec im2col_pixels(const Problem& p, const KernelConfig& c, int operand, std::int64_t bytes) {
    const Activation a = activation(p, operand);
    TensorMapSpec map;
    map.size = {a.channels, a.pixels, p.conv.n};
    map.stride_bytes = {a.channels * bytes, a.pixels * a.channels * bytes};
    Im2colSpec im2col;
    im2col.dims = p.conv.in.rank;
    for (int d = 0; d < im2col.dims; ++d) {
        const Im2colLine line = im2col_line(p, c, d);
        const auto i = static_cast<std::size_t>(im2col.dims - 1 - d);
        im2col.size[i] = line.size, im2col.step[i] = line.step;
        im2col.lower[i] = line.lower, im2col.upper[i] = line.upper();
    }
    map.im2col = im2col;
    return map;
}

// As an operand of a walk over taps: channels of x, channels of y of one group, taps. These count on through those of the
// next channels, up to the first channel of the last group.
TensorMapSpec weights_by_tap(const Problem& p, std::int64_t bytes) {
    const std::int64_t c = p.conv.c / p.conv.g, k = p.conv.k / p.conv.g, taps = product(p.conv.filter);
    TensorMapSpec map;
    map.size = {c, k, ((p.conv.g - 1) * k + 1) * taps};
    map.stride_bytes = {taps * c * bytes, c * bytes};
    return map;
}

// As a matrix for each group: one row for each channel of y.
TensorMapSpec weight_rows(const Problem& p, std::int64_t bytes) {
    const std::int64_t row = p.conv.c / p.conv.g * product(p.conv.filter), k = p.conv.k / p.conv.g;
    TensorMapSpec map;
    map.size = {row, k, p.conv.g};
    map.stride_bytes = {row * bytes, k * row * bytes};
    return map;
}

TensorMapSpec operand_map(const Problem& p, const KernelConfig& c, int operand) {
    const std::int64_t bytes = bytes_of(operand_dtype(c, operand));
    const bool walks = walks_taps(c);
    if (is_weight(p.op, operand)) {
        return walks && operand != 2 ? weights_by_tap(p, bytes) : weight_rows(p, bytes);
    }
    const int gathered = p.op == Op::conv_bwd_weight ? 1 : 0;
    return walks && operand == gathered ? im2col_pixels(p, c, operand, bytes) : pixel_rows(p, operand, bytes);
}

TensorMaps tensor_conv_maps(const Problem& p, const KernelConfig& c, const LaunchSpec& block) {
    TensorMaps maps;
    for (int operand = 0; operand < 3; ++operand) {
        TensorMapSpec map = operand_map(p, c, operand);
        map.dtype = operand_dtype(c, operand);
        map.box = block.boxes[static_cast<std::size_t>(operand)];
        maps[static_cast<std::size_t>(operand)] = map;
    }
    return maps;
}

}  // namespace

std::optional<LaunchPlan> im2col_grid(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int, Rejected*) {
    const GemmView gemm = gemm_view(p);
    GpuGrid plan = tile_grid(c, arch, tensor_conv_tiles(p, gemm, c), tensor_conv_steps(p, gemm, c));
    const std::int64_t cluster = std::int64_t{c.cluster.m} * c.cluster.n;
    plan.raster_group = raster_group_of(c, std::int64_t{arch.units} * c.blocks_per_unit / cluster);
    if (sums_in_workspace(c)) add_reduction(plan, gemm_view(p));
    plan.tensor_maps = tensor_conv_maps(p, c, plan.block);
    return plan;
}

}  // namespace tilewise
