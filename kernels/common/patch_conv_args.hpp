// SPDX-License-Identifier: MIT
// The arguments of forward and backward data by patches (patch_conv, patch_box_conv): how taps read, what a block keeps, and
// which tiles it takes. The host works it out and hands it over in KernelArgs::family_words.
#pragma once
#include "patch_conv_layout.hpp"

namespace tilewise {

// All that a launch needs beside the problem: worked out once on the host, since every block would take longer for it than for
// its first tile.
struct PatchConvArgs {
    PatchAxis axes[kMaxKernelDims];
    PatchTile tile;
    PatchConvLayout plan;
    int tiles[kMaxKernelDims], image_tiles;  // of pixels, along each axis
    // Tiles of a block; so many of the first blocks have one more. Blocks that follow each other either go on in the same slice, or
    // (interleaved > 1) do the same tiles of as many slices, whose pixels then come from memory together.
    int tiles_per_block, remainder, interleaved;
};

// `blocks` is at most the number of tiles, and a multiple of `interleaved`, which is 1 or the number of slices.
constexpr PatchConvArgs patch_conv_args(const KernelConv& conv, const PatchTile& tile, const PatchConvKernel& kernel,
                                        int warp_rows, int blocks, int interleaved) {
    PatchConvArgs launch{};
    for (int d = 0; d < kMaxKernelDims; ++d) {
        launch.axes[d] = patch_axis(conv, d, kernel.backward_data);
        launch.tiles[d] = (launch.axes[d].class_outputs() + tile.extent[d] - 1) / tile.extent[d];
    }
    launch.tile = tile;
    launch.plan = patch_conv_layout(conv, launch.axes, tile, kernel, warp_rows);
    launch.image_tiles = (to_int(conv.images) + tile.images - 1) / tile.images;
    const Index pixels = Index(launch.image_tiles) * launch.tiles[0] * launch.tiles[1] * launch.tiles[2];
    const Index all = interleaved > 1 ? pixels : pixels * launch.plan.column_tiles * (conv.groups / kernel.merge);
    launch.tiles_per_block = to_int(all / (blocks / interleaved)),
    launch.remainder = to_int(all % (blocks / interleaved));
    launch.interleaved = interleaved;
    return launch;
}

}  // namespace tilewise
