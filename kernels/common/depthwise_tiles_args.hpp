// SPDX-License-Identifier: MIT
// How a launch of a depthwise kernel on matrix units cuts up its outputs
// (kernels/cuda/depthwise_block_diagonal/block_diagonal_shape.hpp, toeplitz_shape.hpp): worked out by the host and carried in
// KernelArgs::family_words, since a block that divides for itself does so before its first load. Plain data, for host and kernel.
#pragma once
#include "launch_divisor.hpp"

namespace tilewise {

// A tile is some columns of some frames, planes of images, and as high as they are; blocks share the rows of all tiles evenly.
struct DepthwiseTilesArgs {
    int frames, reach, half;   // of a tile: frames, the pixels of a line that a frame's outputs meet, those of a phase
    int total_frames;          // planes of all images
    int part_rows, remainder;  // rows of a part; so many parts at first have one more
    LaunchDivisor channel_tiles, column_tiles, height;  // of the outputs
    LaunchDivisor parts;                                // of the reduction, where they are blocks of a cluster
    LaunchDivisor across, pitch;  // of a tile: columns (band: strips of 8) of a frame, slots from frame to frame
    LaunchDivisor depth;          // planes of an image of outputs
};

// The rows that a part takes, counted through tile after tile.
struct DepthwiseRows {
    int at, end;

    constexpr DepthwiseRows(const DepthwiseTilesArgs& launch, int part)
        : at(part * launch.part_rows + (part < launch.remainder ? part : launch.remainder)),
          end(at + launch.part_rows + (part < launch.remainder ? 1 : 0)) {}
    // The tile of the next rows, the first of these in it, and how many it has.
    struct Run {
        int tile, top, rows;
    };
    constexpr Run next(const DepthwiseTilesArgs& launch) {
        const int height = static_cast<int>(launch.height.divisor), tile = launch.height.quotient(at);
        const int top = at - tile * height, rows = height - top < end - at ? height - top : end - at;
        at += rows;
        return {tile, top, rows};
    }
};

}  // namespace tilewise
