// SPDX-License-Identifier: MIT
// What a block of backward weight by patches (gather=halo, cuda/halo_weight.hpp) keeps in shared memory: of a tile of output
// pixels the gradients, and the patch of x that all taps read, in every stage of the ring; and the tables by which they are
// staged and read. The host chooses the tile by it (config/halo_weight_plan.cpp), and the kernel finds its way: one truth.
#pragma once
#include "halo_shape.hpp"

namespace tilewise {

// Up to so many parts of sums, a thread of the second kernel reads all of its own; beyond, lanes share them (cuda/reduce_many.hpp).
inline constexpr int kFewParts = 4, kFewRun = 4;  // neighbouring sums of a thread then

// Whether patches are copied line by line: pixels of few chunks leave lanes without work, and are looked up in a table instead.
constexpr bool halo_weight_by_lines(int merged_groups, int tile_columns) {
    return merged_groups > 1 || tile_columns >= 32;
}

inline constexpr int kHaloWeightDepth = 16;  // pixels that one matrix instruction adds up

struct HaloWeightShape {
    HaloAxis x_axes[kMaxKernelDims], y_axes[kMaxKernelDims];
    HaloPatchShape x, y;
    int tiles[kMaxKernelDims], image_tiles;  // along each axis
    int together;                            // parts of the reduction that meet in a cluster

    constexpr int patches() const { return image_tiles * tiles[0] * tiles[1] * tiles[2]; }
    constexpr int rows() const { return y.pixels(); }
    constexpr int steps() const { return (rows() + kHaloWeightDepth - 1) / kHaloWeightDepth; }
    constexpr int y_bytes() const { return steps() * kHaloWeightDepth * y.pitch; }
    constexpr int stage_bytes() const { return y_bytes() + x.bytes(); }
    // First come a word for every pixel of the tile (where in the patch it reads), for every row of the product (where its result
    // goes) and for every eight of these (where its taps are); then the stages, and two words for every staged pixel that is looked up.
    constexpr int word_bytes(int tile_m) const {
        const int words = steps() * kHaloWeightDepth + tile_m + tile_m / 8;
        return (words * 4 + kHaloChunkBytes - 1) / kHaloChunkBytes * kHaloChunkBytes;
    }
    constexpr int bytes(int stages, int tile_m, bool by_lines) const {
        const int looked_up = (by_lines && x.chunks != 0 ? 0 : x.pixels()) + (by_lines ? 0 : rows());
        return word_bytes(tile_m) + stages * stage_bytes() + looked_up * 8;
    }
};
static_assert(sizeof(HaloWeightShape) <= sizeof(int) * kMaxKernelGeometry);

// The sums of a wave on their way out take the place of the stages: a line for every column, of rows and some room that keeps lanes
// on banks of their own.
inline constexpr int kHaloWeightSumRoom = 4;
constexpr int halo_weight_sum_pitch(int wave_rows) { return (wave_rows + kHaloWeightSumRoom) * 4; }
constexpr int halo_weight_sum_bytes(int wave_rows, int wave_columns, int waves) {
    return waves * wave_columns * halo_weight_sum_pitch(wave_rows);
}

// y as a tensor that is staged as it is.
constexpr HaloAxis halo_plain_axis(const KernelConv& conv, int d) {
    HaloAxis a{};
    a.inputs = a.outputs = to_int(conv.out[d]);
    a.in_step = a.classes = a.taps = a.dilation = a.period = a.span = 1;
    return a;
}

// The staged channels of x: whole 16-byte chunks of them; or (chunks == 0) at most four, each pixel in eight bytes, so that two
// neighbouring pixels are a chunk: the rows of the product then are two taps of four channels at a time.
inline constexpr int kHaloFewChannels = 4, kHaloFewBytes = 8;

// Of a tile, with so many 16-byte chunks of channels of x and of y at every pixel. Lines of y may be filled up to eight pixels with
// zeros, so that eight pixels that are read together are of one line and on banks of their own.
constexpr HaloWeightShape halo_weight_shape(const KernelConv& conv, const HaloTile& tile, int x_chunks, int y_chunks,
                                            bool whole_lines) {
    HaloWeightShape s{};
    for (int d = 0; d < kMaxKernelDims; ++d) {
        s.x_axes[d] = halo_axis(conv, d, false);
        s.y_axes[d] = halo_plain_axis(conv, d);
    }
    s.x = halo_patch_shape(s.x_axes, tile, x_chunks), s.y = halo_patch_shape(s.y_axes, tile, y_chunks);
    if (whole_lines) s.y.phase = halo_divide_up(tile.extent[2], 8) * 8;
    if (x_chunks == 0) {  // columns as they are, and one more where a last tap has no partner
        s.x.pitch = kHaloFewBytes;
        s.x.steps[2] = 1, s.x.phase = (s.x.columns + 2) / 2 * 2;
    }
    for (int d = 0; d < kMaxKernelDims; ++d) s.tiles[d] = halo_divide_up(to_int(conv.out[d]), tile.extent[d]);
    s.image_tiles = halo_divide_up(to_int(conv.images), tile.images);
    s.together = 1;
    return s;
}

// Rows of the product that belong to one tap, or with few channels to a line of taps.
constexpr int halo_weight_tap_rows(const KernelConv& conv, int groups, bool few) {
    return few ? to_int(conv.filter[2] + 1) / 2 * 2 * kHaloFewChannels : groups * to_int(conv.c);
}
constexpr int halo_weight_rows(const KernelConv& conv, int groups, bool few) {
    return halo_weight_tap_rows(conv, groups, few) *
           to_int(conv.filter[0] * conv.filter[1] * (few ? 1 : conv.filter[2]));
}

}  // namespace tilewise
