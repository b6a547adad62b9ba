// SPDX-License-Identifier: MIT
// The shared memory of a block of backward weight by patches (gather=halo, cuda/patch_wgrad/patch_wgrad.hpp): for a tile of output
// pixels the gradients, and the patch of x that all taps read, in every stage of the ring; and the tables by which they are
// staged and read. The host chooses the tile by it, and the kernel finds its way: one truth.
#pragma once
#include "patch_shape.hpp"

namespace tilewise {

// Whether patches are copied line by line: pixels of few chunks leave lanes without work, and are looked up in a table instead.
constexpr bool patch_wgrad_by_lines(int merged_groups, int tile_columns) {
    return merged_groups > 1 || tile_columns >= 32;
}

inline constexpr int kPatchWgradDepth = 16;  // pixels that one matrix instruction adds up

struct PatchWgradArgs {
    PatchAxis x_axes[kMaxKernelDims], y_axes[kMaxKernelDims];
    PatchShape x, y;
    int tiles[kMaxKernelDims], image_tiles;  // along each axis
    int together;                            // parts of the reduction that meet in a cluster

    constexpr int patches() const { return image_tiles * tiles[0] * tiles[1] * tiles[2]; }
    constexpr int rows() const { return y.pixels(); }
    constexpr int steps() const { return (rows() + kPatchWgradDepth - 1) / kPatchWgradDepth; }
    constexpr int y_bytes() const { return steps() * kPatchWgradDepth * y.pitch; }
    constexpr int stage_bytes() const { return y_bytes() + x.bytes(); }
    // First come a word for every pixel of the tile (where in the patch it reads), for every row of the product (where its result
    // goes) and for every eight of these (where its taps are); then the stages, and two words for every staged pixel that is looked up.
    constexpr int word_bytes(int tile_m) const {
        const int words = steps() * kPatchWgradDepth + tile_m + tile_m / 8;
        return (words * 4 + kPatchChunkBytes - 1) / kPatchChunkBytes * kPatchChunkBytes;
    }
    constexpr int bytes(int stages, int tile_m, bool by_lines) const {
        const int looked_up = (by_lines && x.chunks != 0 ? 0 : x.pixels()) + (by_lines ? 0 : rows());
        return word_bytes(tile_m) + stages * stage_bytes() + looked_up * 8;
    }
};

// y as a tensor that is staged as it is.
constexpr PatchAxis plain_patch_axis(const KernelConv& conv, int d) {
    PatchAxis a{};
    a.inputs = a.outputs = to_int(conv.out[d]);
    a.in_step = a.classes = a.taps = a.dilation = a.period = a.span = 1;
    return a;
}

// What all tiles of a problem have in common.
constexpr PatchWgradArgs patch_wgrad_axes(const KernelConv& conv) {
    PatchWgradArgs s{};
    for (int d = 0; d < kMaxKernelDims; ++d) {
        s.x_axes[d] = patch_axis(conv, d, false);
        s.y_axes[d] = plain_patch_axis(conv, d);
    }
    s.together = 1;
    return s;
}

// Lays out a tile with so many 16-byte chunks of channels of x and of y at every pixel; none of x for few channels, whose rows of the
// product are two taps of four channels at a time. Lines of y may be filled up to eight pixels with
// zeros, so that eight pixels that are read together are of one line and on banks of their own.
constexpr void lay_out_patch_wgrad(PatchWgradArgs& s, const KernelConv& conv, const PatchTile& tile, int x_chunks,
                                   int y_chunks, bool whole_lines) {
    s.x = patch_shape(s.x_axes, tile, x_chunks), s.y = patch_shape(s.y_axes, tile, y_chunks);
    if (whole_lines) s.y.phase = patch_divide_up(tile.extent[2], 8) * 8;
    if (x_chunks == 0) {  // columns as they are, and one more where a last tap has no partner
        s.x.pitch = kFewChannelBytes;
        s.x.steps[2] = 1, s.x.phase = (s.x.columns + 2) / 2 * 2;
    }
    for (int d = 0; d < kMaxKernelDims; ++d) s.tiles[d] = patch_divide_up(s.y_axes[d].outputs, tile.extent[d]);
    s.image_tiles = patch_divide_up(to_int(conv.images), tile.images);
}

// Rows of the product that belong to one tap, or with few channels to a line of taps.
constexpr int patch_wgrad_tap_rows(const KernelConv& conv, int groups, bool few) {
    return few ? to_int(conv.filter[2] + 1) / 2 * 2 * kFewChannels : groups * to_int(conv.c);
}
constexpr int patch_wgrad_rows(const KernelConv& conv, int groups, bool few) {
    return patch_wgrad_tap_rows(conv, groups, few) *
           to_int(conv.filter[0] * conv.filter[1] * (few ? 1 : conv.filter[2]));
}

}  // namespace tilewise
