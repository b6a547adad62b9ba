// SPDX-License-Identifier: MIT
// How forward of first layers (at most four channels per group; cuda/first_layer_conv/first_layer_conv.hpp) is laid out: what a
// block keeps in shared memory and which tiles it takes. The host works it out and hands it over in KernelArgs::family_words.
//
// Every staged pixel takes eight bytes, four channels. Where the stride along the columns is even, four taps that are
// neighbours along a line of the filter are 32 bytes from a multiple of 16 on: one step of the reduction, whatever the number of channels.
#pragma once
#include "patch_conv_layout.hpp"

namespace tilewise {

inline constexpr int kFirstLayerStepTaps = 4;  // of a line, in one step of the reduction

struct FirstLayerConvArgs {
    PatchAxis axes[kMaxKernelDims];
    PatchTile tile;
    PatchShape patch;
    int tiles[kMaxKernelDims], image_tiles, column_tiles;  // of pixels along each axis; of a group's output channels
    int blocks_per_slice;                                  // blocks that share the tiles of one group and column tile
    int lines, line_steps;                                 // of the filter; steps of the reduction in each
    // Bytes: from weight row to weight row, and where the sections of shared memory begin.
    int weight_pitch, weights, row_table, patch_table, drain, drain_bytes, patches, patch_bytes, total_bytes;

    constexpr int tile_count() const { return image_tiles * tiles[0] * tiles[1] * tiles[2]; }
};

// The numbers that a config fixes.
struct FirstLayerConvKernel {
    int tile_m, tile_n, warps, warp_rows, buffers, out_bytes;
};

constexpr FirstLayerConvArgs first_layer_conv_args(const KernelConv& conv, const PatchTile& tile,
                                                   const FirstLayerConvKernel& k) {
    FirstLayerConvArgs p{};
    for (int d = 0; d < kMaxKernelDims; ++d) p.axes[d] = patch_axis(conv, d, false);
    p.tile = tile;
    p.patch = patch_shape(p.axes, tile, 0);
    p.lines = to_int(conv.filter[0] * conv.filter[1]);
    p.line_steps = patch_divide_up(to_int(conv.filter[2]), kFirstLayerStepTaps);
    // Taps that fill up a step read pixels that count for nothing, but are there.
    const int filled = p.line_steps * kFirstLayerStepTaps - to_int(conv.filter[2]);
    p.patch.pitch = kFewChannelBytes, p.patch.steps[2] = 1, p.patch.phase = (p.patch.columns + filled + 1) / 2 * 2;
    for (int d = 0; d < kMaxKernelDims; ++d) p.tiles[d] = patch_divide_up(p.axes[d].outputs, tile.extent[d]);
    p.image_tiles = patch_divide_up(to_int(conv.images), tile.images);
    p.column_tiles = patch_divide_up(to_int(conv.k), k.tile_n);

    p.weight_pitch = patch_odd_chunks(p.lines * p.line_steps * 2 * kPatchChunkBytes);
    const int drain_pitch = patch_odd_chunks(k.tile_n * k.out_bytes);
    constexpr int kPassBytes = kPatchStepRows * kPatchMatrix * 4;  // sums of one step
    const int drain = patch_drain_rows(k.warp_rows, drain_pitch) * drain_pitch;
    p.drain_bytes = drain > kPassBytes ? drain : kPassBytes;
    p.patch_bytes = p.patch.bytes();
    p.weights = 0;
    p.row_table = p.weights + k.tile_n * p.weight_pitch;
    p.patch_table = p.row_table + k.tile_m * kPatchEntry;
    p.drain = p.patch_table + patch_chunk_up(p.patch.pixels() * kPatchEntry);
    p.patches = p.drain + k.warps * p.drain_bytes;
    p.total_bytes = p.patches + k.buffers * p.patch_bytes;
    return p;
}

}  // namespace tilewise
