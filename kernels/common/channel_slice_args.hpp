// SPDX-License-Identifier: MIT
// How a launch of a depthwise kernel by slices cuts up its outputs (depthwise_channel_slice): worked out by the host
// and carried in KernelArgs::family_words. Plain data, for host and kernel.
#pragma once
#include "launch_divisor.hpp"

namespace tilewise {

// A tile is some rows of some images; tiles are counted along bands of rows, then images. A piece is what a thread takes: some
// columns of a row of a tile (or of a few rows below each other), counted along images, then columns, then rows.
struct ChannelSliceArgs {
    int images, rows;                                           // of a tile, of outputs
    int slice_rows;                                             // of inputs, that a tile meets at most
    int columns;                                                // of a piece
    LaunchDivisor channel_tiles, bands, tile_images, segments;  // segments: pieces side by side
};

}  // namespace tilewise
