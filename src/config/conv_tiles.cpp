// SPDX-License-Identifier: MIT
#include "config/conv_tiles.hpp"

#include <algorithm>

#include "base/bounded_product.hpp"
#include "base/rounding.hpp"
#include "config/im2col.hpp"
#include "kernels/common/channel_chunks.hpp"
#include "kernels/common/conv_walk.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {
namespace {

// Along a dimension some residue classes of backward data have the longest walk, the others one pixel less.
std::int64_t class_row_tiles(const KernelConv& conv, std::int64_t tile) {
    std::int64_t tiles = 0;
    const int kinds = 1 << kMaxKernelDims;  // each dimension's longest classes, or the others
    for (int kind = 0; kind < kinds; ++kind) {
        std::int64_t classes = 1, rows = conv.images;
        for (int d = 0; d < kMaxKernelDims; ++d) {
            const std::int64_t stride = class_stride(conv, d), longest = ceil_div(conv.in[d], stride);
            const std::int64_t more = conv.in[d] - (longest - 1) * stride;
            const bool is_longest = (kind >> d & 1) == 0;
            classes *= is_longest ? more : classes_along(conv, d) - more;
            rows *= is_longest ? longest : longest - 1;
        }
        tiles += classes * ceil_div(rows, tile);
    }
    return tiles;
}

}  // namespace

GemmView gathered_view(const Problem& p, const GemmView& gemm, const KernelConfig& c) {
    GemmView view = gemm;
    // Merged groups are one product, wider and deeper.
    const std::int64_t groups = std::max(1, c.num_groups_to_merge);
    view.n *= groups, view.batch /= groups;
    (p.op == Op::conv_bwd_weight ? view.m : view.k) *= groups;
    if (!counts_whole_chunks(c)) return view;
    const ConvShape& s = p.conv;
    const std::int64_t channels = (p.op == Op::conv_bwd_data ? s.k : s.c) / s.g;
    const std::int64_t counted = product(s.filter) * whole_chunks(channels, bytes_of(c.dtype));
    (p.op == Op::conv_bwd_weight ? view.n : view.k) = counted;
    return view;
}

GemmView worked_view(const Problem& p, const GemmView& gemm, const KernelConfig& c) {
    GemmView v = gathered_view(p, gemm, c);
    if (c.op != Op::conv_bwd_data) return v;
    const ConvShape& s = p.conv;
    std::int64_t classes = 1;
    for (int i = 0; i < s.in.rank; ++i) classes *= std::min(s.stride[i], s.filter[i]);
    v.k = std::max<std::int64_t>(1, v.k / classes);
    return v;
}

bool reads_chunks_anywhere(const KernelConfig& c) {
    constexpr std::int64_t kElementBytes = 2;
    return is_channels_last(c.layout) && !c.explicit_gemm && bytes_of(c.dtype) == kElementBytes;
}

bool counts_whole_chunks(const KernelConfig& c) {
    if (!reads_chunks_anywhere(c)) return false;
    const bool a = c.vector_a == 1, b = c.vector_b == 1;
    return c.op == Op::conv_fwd ? a && b : c.op == Op::conv_bwd_data ? a : b;
}

std::int64_t gather_conv_tiles(const Problem& p, const GemmView& whole, const KernelConfig& c) {
    const GemmView gemm = gathered_view(p, whole, c);
    const std::int64_t rows =
        p.op == Op::conv_bwd_data ? class_row_tiles(kernel_conv(p), c.tile.m) : ceil_div(gemm.m, c.tile.m);
    return bounded_product({rows, ceil_div(gemm.n, c.tile.n), gemm.batch, c.split_k});
}

std::int64_t tensor_conv_tiles(const Problem& p, const GemmView& gemm, const KernelConfig& c) {
    std::int64_t rows = gemm.m, columns = gemm.n, batch = gemm.batch;
    if (walks_taps(c) && p.op != Op::conv_bwd_weight) {
        rows = p.conv.n;
        for (int d = 0; d < p.conv.in.rank; ++d) {
            const Im2colLine line = im2col_line(p, c, d);
            rows *= line.rows, batch *= line.classes;
        }
    }
    if (walks_taps(c) && p.op == Op::conv_bwd_weight) {
        columns = product(p.conv.filter) * channel_lines(c, p.conv.c / p.conv.g) * channel_line(c);
    }
    const auto tiles = [](std::int64_t size, std::int64_t tile, std::int64_t cluster) {
        return round_up(size, tile * cluster) / tile;
    };
    return bounded_product(
        {tiles(rows, c.tile.m, c.cluster.m), tiles(columns, c.tile.n, c.cluster.n), batch, c.split_k});
}

std::int64_t tensor_conv_steps(const Problem& p, const GemmView& gemm, const KernelConfig& c) {
    if (!walks_taps(c) || p.op == Op::conv_bwd_weight) return ceil_div(gemm.k, c.tile.k);
    const std::int64_t channels = (p.op == Op::conv_fwd ? p.conv.c : p.conv.k) / p.conv.g;
    return product(p.conv.filter) / joined_taps(c) * channel_lines(c, channels);
}

GemmView columns_view(const Problem& p) {
    const ConvShape& s = p.conv;
    return {s.n * product(output_size(s)), product(s.filter) * s.c / s.g, s.k / s.g, s.g};
}

std::int64_t column_conv_tiles(const Problem& p, const KernelConfig& c) {
    const GemmView view = columns_view(p);
    return bounded_product({ceil_div(view.m, c.tile.m), ceil_div(view.n, c.tile.n), view.batch, c.split_k});
}

}  // namespace tilewise
