// SPDX-License-Identifier: MIT
// How a launch of a depthwise kernel by slabs cuts up its outputs (kernels/cuda/depthwise_slab.hpp): worked out by the host
// (src/config/slab_plan.cpp, src/run/slab_grid.cpp) and carried in KernelArgs::geometry. Plain data, for host and kernel.
#pragma once
#include "depthwise_launch.hpp"

namespace tilewise {

// A tile is some rows of some images; tiles are counted along bands of rows, then images. A piece is what a thread takes: some
// columns of a row of a tile (or of a few rows below each other), counted along images, then columns, then rows.
struct SlabLaunch {
    int images, rows;                                           // of a tile, of outputs
    int slab_rows;                                              // of inputs, that a tile meets at most
    int columns;                                                // of a piece
    LaunchDivisor channel_tiles, bands, tile_images, segments;  // segments: pieces side by side
};

}  // namespace tilewise
