// SPDX-License-Identifier: MIT
// Positions of forward and backward data whose taps read shifted runs of pixels (gather=halo on warpgroup products,
// cuda/resident_filter_conv/resident_filter_conv.hpp). Every image is walked through as if it were larger, so that the pixel that a
// tap reads at a position is always the same number of positions away; what lies between two lines of pixels is zeros that both
// share. Forward with a stride reads several such walks, one for each remainder that a tap's distance leaves; backward data with a
// stride writes as many classes of pixels. The host plans by these numbers and the kernel counts with them: one truth.
#pragma once
#include "args.hpp"
#include "position_extent.hpp"

namespace tilewise {

inline constexpr int kResidentFilterTaps = 3;        // along each of two axes, known when compiled
inline constexpr int kResidentFilterMostStages = 8;  // of a worker's ring
inline constexpr int kResidentFilterStepChannels = 16, kResidentFilterLineChannels = 64, kResidentFilterFullSteps = 4;

struct ResidentFilterConvArgs {
    int extent[kMaxKernelDims];  // positions along each axis, outermost first
    int pad[kMaxKernelDims];     // pixels that a walk begins before the image
    int tiles;                   // runs of positions of all images
    int jobs, parts;             // groups and tiles of columns; workers that share the runs of each
    int column_tiles;            // of a group
    int lines;                   // of the channels that are summed
    int last_steps;              // products along the last one; all others have 4
    int slot_lines, slot_bytes;  // pixels of a stage, and its room
    int stages;
};

// Bytes of a line that so many products read.
constexpr int resident_filter_line_bytes(int steps) { return steps == 1 ? 32 : steps == 2 ? 64 : 128; }

// A tap along one axis: the walk of forward or the class of backward data that it belongs to, and how many positions away it reads.
struct TapAlong {
    int remainder, shift;
};
constexpr TapAlong tap_along(int tap, int stride, bool backward) {
    const int positions = tap / stride, farthest = (kResidentFilterTaps - 1) / stride;
    return {tap - positions * stride, backward ? farthest - positions : positions};
}

}  // namespace tilewise
