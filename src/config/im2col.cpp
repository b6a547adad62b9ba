// SPDX-License-Identifier: MIT
#include "config/im2col.hpp"

#include <algorithm>

#include "config/geometry.hpp"
#include "kernels/common/to_int.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

constexpr std::int64_t kLineBytes = 128;

std::int64_t ceil_divided(std::int64_t x, std::int64_t by) { return x >= 0 ? (x + by - 1) / by : -(-x / by); }

}  // namespace

std::int64_t im2col_classes(const Problem& p, int d) { return p.op == Op::conv_bwd_data ? p.conv.stride[d] : 1; }

Im2colLine im2col_line(const Problem& p, const KernelConfig& c, int d) {
    const ConvShape& s = p.conv;
    const std::int64_t reach = (s.filter[d] - 1) * s.dilation[d], out = output_extent(s, d);
    Im2colLine line;
    line.classes = im2col_classes(p, d);
    if (p.op == Op::conv_bwd_data) {
        line.size = out;
        line.rows = (s.in[d] + s.stride[d] - 1) / s.stride[d];
        line.lower = ceil_divided(s.pad_before[d] - reach, s.stride[d]);
        line.farthest = ceil_divided(s.pad_before[d], s.stride[d]) - line.lower;
    } else {
        line.size = s.in[d];
        line.rows = out;
        line.step = s.stride[d];
        line.lower = -s.pad_before[d];
        line.farthest = reach;
    }
    if (d == s.in.rank - 1) {
        const std::int64_t joined = (joined_taps(c) - 1) * s.dilation[d];
        line.rows += joined, line.farthest -= joined;
        // Zeros behind a line that are also those before the next one.
        if (joined > 0 && line.farthest == 0) {
            const std::int64_t before = -line.lower, behind = line.rows - before - line.size;
            line.rows -= std::clamp<std::int64_t>(std::min(before, behind), 0, joined);
        }
    }
    return line;
}

std::int64_t gathered_channels(const Problem& p) {
    return (p.op == Op::conv_bwd_data ? p.conv.k : p.conv.c) / p.conv.g;
}

std::int64_t summed_unit(const KernelConfig& c) {
    constexpr std::int64_t kProductBytes = 32;
    constexpr int kColumnLine = 64;
    return c.tile.n > kColumnLine / 2 && c.tile.n % kColumnLine != 0 ? kProductBytes / bytes_of(c.dtype)
                                                                     : channel_line(c);
}

std::int64_t depth_bytes(const KernelConfig& c) {
    return c.tile.k * bytes_of(c.dtype) % kLineBytes == 0 ? kLineBytes : kLineBytes / 2;
}

std::int64_t column_line_bytes(const KernelConfig& c) {
    if (contiguous_axis(c, 1) == Axis::k) return depth_bytes(c);
    return c.tile.n * bytes_of(c.dtype_b) % kLineBytes == 0 ? kLineBytes : kLineBytes / 2;
}

int joined_taps(const KernelConfig& c) {
    const std::int64_t depth = c.tile.k * bytes_of(c.dtype);
    return walks_taps(c) ? to_int(std::max<std::int64_t>(1, depth / depth_bytes(c))) : 1;
}

int room_lines(const KernelConfig& c) { return joined_taps(c) > 1 ? kTapRoomLines : 0; }

bool walks_taps(const KernelConfig& c) {
    return is_conv(c.op) && c.gather == Gather::tensor && c.specialization != Specialization::filter_1x1_stride1;
}

std::int64_t channel_line(const KernelConfig& c) {
    return (c.op == Op::conv_bwd_weight ? column_line_bytes(c) : depth_bytes(c)) / bytes_of(c.dtype);
}

std::int64_t channel_lines(const KernelConfig& c, std::int64_t channels) {
    return (channels + channel_line(c) - 1) / channel_line(c);
}

}  // namespace tilewise
