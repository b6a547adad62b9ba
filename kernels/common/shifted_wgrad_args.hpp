// SPDX-License-Identifier: MIT
// Positions of backward weight by taps that read shifted runs of pixels (gather=halo on warpgroup products,
// cuda/shifted_wgrad/shifted_wgrad.hpp). Every image is walked through as if it were larger: along each axis by as many positions
// as the filter reaches beyond one pixel, less those where the zeros behind one line can be those before the next; dy is zero
// there. Then the pixel of x that a tap reads at a position is always the same number of positions away. With a stride x is several
// such walks, one for each remainder that a tap's distance leaves, and each tap belongs to one. The host plans by these numbers and
// the kernel counts with them: one truth.
#pragma once
#include "position_extent.hpp"
#include "to_int.hpp"

namespace tilewise {

inline constexpr int kShiftedWgradMostStages = 8;   // of the ring
inline constexpr int kShiftedWgradMostCopies = 32;  // of a stage, dy's lines and x's boxes: a lane for each

struct ShiftedWgradArgs {
    int extent[kMaxKernelDims];  // positions along each axis, outermost first
    int walks[kMaxKernelDims];   // of x, along each axis: remainders of the stride that taps leave
    int steps;                   // runs of positions of all images
    int line;                    // channels of x that one line in shared memory holds: 64, or 32
    int block_taps;              // of all taps
    int x_boxes, box_lines;      // copies of each walk of x in a stage, and pixels of each
    int stages;                  // that fit
    int together;                // parts of the reduction that meet in a cluster

    constexpr int x_walks() const { return walks[0] * walks[1] * walks[2]; }
    constexpr int x_bytes() const { return x_walks() * x_boxes * box_lines * line * 2; }
};

constexpr int shifted_wgrad_walks(const KernelConv& conv, int d) {
    const Index reach = (conv.filter[d] - 1) * conv.dilation[d] + 1;
    return to_int(reach < conv.stride[d] ? reach : conv.stride[d]);
}
constexpr int shifted_wgrad_extent(const KernelConv& conv, int d) {
    const Index stride = conv.stride[d], before = conv.pad[d] - shifted_wgrad_walks(conv, d) + 1;
    const Index zeros = before > 0 ? (before + stride - 1) / stride : 0;  // that every walk begins with
    return to_int(position_extent(conv.out[d], (conv.filter[d] - 1) * conv.dilation[d] / stride, zeros,
                                  (conv.in[d] - 1 + conv.pad[d]) / stride + 1));
}
// At most so many: whole planes of taps, or lines of one plane, or taps of one line, so that the first is never beyond another.
constexpr int tap_count_of_block(const KernelConv& conv, int most) {
    const auto even_part = [](int size, int limit) {
        while (size % limit != 0) --limit;
        return limit;
    };
    const int width = to_int(conv.filter[2]), height = to_int(conv.filter[1]), plane = width * height;
    if (most >= plane * to_int(conv.filter[0])) return plane * to_int(conv.filter[0]);
    if (most >= plane) return most / plane * plane;
    return most >= width ? even_part(height, most / width) * width : even_part(width, most);
}
constexpr int tap_count(const KernelConv& conv) { return to_int(conv.filter[0] * conv.filter[1] * conv.filter[2]); }

// A line of dy at a position, and how many a tile's columns are: 64 channels to a line, or 32 where that fetches less.
constexpr int shifted_wgrad_line_bytes(int columns) { return (columns + 31) / 32 % 2 == 0 ? 128 : 64; }
constexpr int shifted_wgrad_y_lines(int columns) {
    const int line = shifted_wgrad_line_bytes(columns) / 2;
    return (columns + line - 1) / line;
}
constexpr int shifted_wgrad_y_bytes(int positions, int columns) {
    return positions * shifted_wgrad_line_bytes(columns) * shifted_wgrad_y_lines(columns);
}

// A tap reads a walk of x, so many positions beyond a pixel's.
struct TapPlace {
    int walk, shift;
};
constexpr TapPlace tap_place(const KernelConv& conv, const ShiftedWgradArgs& shape, int tap) {
    TapPlace p{0, 0};
    int scale = 1;  // of the tap's number along an axis
    for (int d = 1; d < kMaxKernelDims; ++d) scale *= to_int(conv.filter[d]);
    for (int d = 0; d < kMaxKernelDims; ++d) {
        const int along = tap / scale, far = along * to_int(conv.dilation[d]), stride = to_int(conv.stride[d]);
        tap -= along * scale;
        if (d + 1 < kMaxKernelDims) scale /= to_int(conv.filter[d + 1]);
        const int positions = stride == 1 ? far : far / stride;
        p.walk = p.walk * shape.walks[d] + far - positions * stride;
        p.shift = p.shift * shape.extent[d] + positions;
    }
    return p;
}

}  // namespace tilewise
