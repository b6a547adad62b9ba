// SPDX-License-Identifier: MIT
// Positions of backward weight by taps that read shifted runs of pixels (gather=halo on warpgroup products, cuda/tap_weight.hpp).
// Every image is walked through as if it were larger: along each axis by as many positions as the filter reaches beyond one pixel,
// where dy is zero. Then the pixel of x that a tap reads at a position is always the same number of positions away. The host plans by
// these numbers (config/tap_weight_plan.cpp) and the kernel counts with them: one truth. Stride 1.
#pragma once
#include "args.hpp"

namespace tilewise {

inline constexpr int kTapBoxLines = 64;   // pixels of x that one copy fetches
inline constexpr int kTapMostStages = 8;  // of the ring

struct TapWeightShape {
    int extent[kMaxKernelDims];  // positions along each axis, outermost first
    int steps;                   // runs of positions of all images
    int line;                    // channels of x that one line in shared memory holds: 64, or 32
    int block_taps;              // taps of a block: those of whole planes, or lines, where it cannot have all
    int x_boxes, stages;         // copies of x in a stage; stages that fit
    int together;                // parts of the reduction that meet in a cluster

    constexpr int x_bytes() const { return x_boxes * kTapBoxLines * line * 2; }
};
static_assert(sizeof(TapWeightShape) <= sizeof(int) * kMaxKernelGeometry);

constexpr int tap_weight_extent(const KernelConv& conv, int d) {
    return int(conv.out[d] + (conv.filter[d] - 1) * conv.dilation[d]);
}
constexpr int tap_count_of_block(const KernelConv& conv, int most) {
    const int line = int(conv.filter[2]), plane = line * int(conv.filter[1]);
    if (most >= plane * int(conv.filter[0])) return plane * int(conv.filter[0]);
    const int unit = most >= plane ? plane : most >= line ? line : 1;
    return most / unit * unit;
}
constexpr int tap_count(const KernelConv& conv) { return int(conv.filter[0] * conv.filter[1] * conv.filter[2]); }

// How many positions beyond a pixel's the tap reads.
constexpr int tap_shift(const KernelConv& conv, const TapWeightShape& shape, int tap) {
    const int width = int(conv.filter[2]), height = int(conv.filter[1]);
    const int up = tap / width, w = tap - up * width, d = up / height, h = up - d * height;
    const int lines = d * int(conv.dilation[0]) * shape.extent[1] + h * int(conv.dilation[1]);
    return lines * shape.extent[2] + w * int(conv.dilation[2]);
}

}  // namespace tilewise
