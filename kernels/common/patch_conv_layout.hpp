// SPDX-License-Identifier: MIT
// The shared memory of a block of the patch kernels, forward and backward data (cuda/patch_conv/patch_conv.hpp), and how its
// reduction is cut into steps. The host checks with it whether a problem fits a kernel and chooses the
// tile; the kernel finds its sections with it.
//
// The channels of the staged tensor that belong to one tile are those of `merge` groups. A product is of all input with all
// output channels of some of these, the weights between different groups being zero: as many groups as fit its columns, and at
// least so many that their channels are whole 16-byte chunks. Kernels that read weights in chunks have products of one group.
#pragma once
#include "patch_shape.hpp"

namespace tilewise {

// The numbers that a config fixes.
struct PatchConvKernel {
    bool backward_data;
    int merge;            // groups of a tile
    int tile_m, columns;  // rows of the tile; columns of a product that are computed at a time
    int warps, buffers;   // patches that are resident: fewer where a block has fewer tiles
    int element_bytes, out_bytes;
    bool diagonal;    // products of several groups, as many as have columns; else each group is one
    bool by_element;  // results leave one by one, so that any number of them will do
    bool boxes;       // the copy engine stages patches: pixels without gaps between them, swizzled
    int out_stages;   // tiles of results that may be on their way by the copy engine; 0: threads write them
};

// Bytes from the start of shared memory; every section begins on a chunk.
struct PatchConvLayout {
    int product_groups, products;   // groups of a product, products of a tile
    int in_channels, out_channels;  // of a product
    int chunks;                     // of a product's input channels
    int column_tiles;               // that a product's output channels take
    int classes, steps;             // of outputs; of the reduction, two chunks each, over all classes

    int weight_pitch, product_bytes;  // from row to row of a product's weights, and all of them
    int weights, offsets, class_table, tap_table, row_table, drain, barriers, patches;
    int swizzle;  // the bits of an address that those three above them turn; 0 for none
    int out, out_stages, out_rows, out_pitch, out_bytes, out_swizzle;  // results that leave as boxes; bytes of a stage
    int drain_pitch, drain_bytes;                                      // of a warp
    int patch_bytes, total_bytes;
    PatchShape patch;
};

inline constexpr int kPatchMatrix = 8, kPatchStepRows = 16;  // lines of a chunk of weights; rows of an mma step
inline constexpr int kPatchMostClasses = 64, kPatchEntry = 8;
inline constexpr int kPatchMostChunks = 32;     // of a pixel's channels: a lane copies one
inline constexpr int kPatchMostBox = 256;       // positions of a box along each axis
inline constexpr int kPatchMostBoxStep = 8;     // from column to column of a residue
inline constexpr int kPatchScratchBytes = 512;  // for what a matrix store of a warp has to put somewhere
inline constexpr int kPatchBoxAlign = 1024, kPatchPlainBoxAlign = 128, kPatchBarrierBytes = 8, kPatchMostBuffers = 8;
constexpr int patch_round_up(int bytes, int unit) { return (bytes + unit - 1) / unit * unit; }
// Pixels that the copy engine can put so that eight neighbours are on banks of their own: swizzled, or an odd number of chunks.
inline constexpr int kPatchMostBoxChunks = 31;
constexpr int patch_box_swizzle(int chunks) { return chunks % 2 != 0 ? 0 : (chunks - 1) * kPatchChunkBytes; }
constexpr bool is_patch_box_line(int chunks) {
    return chunks == 2 || chunks == 4 || chunks == 8 || (chunks % 2 != 0 && chunks <= kPatchMostBoxChunks);
}

constexpr int patch_odd_chunks(int bytes) {
    return ((bytes + kPatchChunkBytes - 1) / kPatchChunkBytes | 1) * kPatchChunkBytes;
}
constexpr int patch_chunk_up(int bytes) { return (bytes + kPatchChunkBytes - 1) / kPatchChunkBytes * kPatchChunkBytes; }

// Groups of a product; more than `merge` where no number of groups fits.
constexpr int patch_product_groups(const KernelConv& conv, const PatchConvKernel& kernel) {
    const Index in = kernel.backward_data ? conv.k : conv.c, out = kernel.backward_data ? conv.c : conv.k;
    int groups = 1;
    while (groups <= kernel.merge &&
           (in * groups * kernel.element_bytes % kPatchChunkBytes != 0 ||
            (!kernel.by_element && out * groups * kernel.out_bytes % kPatchChunkBytes != 0))) {
        groups *= 2;
    }
    while (kernel.diagonal && 2 * groups <= kernel.merge && 2 * groups * out <= kernel.columns) groups *= 2;
    return groups;
}

constexpr int patch_class_taps(const PatchAxis (&axes)[kMaxKernelDims], int which) {
    const int w = which % axes[2].classes, up = which / axes[2].classes;
    return axes[2].taps_of_class(w) * axes[1].taps_of_class(up % axes[1].classes) *
           axes[0].taps_of_class(up / axes[1].classes);
}
constexpr int patch_class_steps(const PatchAxis (&axes)[kMaxKernelDims], int which, int chunks) {
    return (patch_class_taps(axes, which) * chunks + 1) / 2;
}

// The rows of the tile that leave together, of those of a warp: more where there are few columns, so that all lanes store.
constexpr int patch_drain_rows(int warp_rows, int pitch) {
    constexpr int kBytes = 2048;
    int rows = warp_rows;
    while (rows > kPatchStepRows && (rows * pitch > kBytes || rows % (2 * kPatchStepRows) != 0)) rows -= kPatchStepRows;
    return rows;
}

// Whether a tile's results are a box of the output: all channels of its groups, and of one class.
constexpr bool patch_leaves_as_boxes(const PatchConvLayout& p, const PatchConvKernel& kernel, int out_chunks) {
    return kernel.boxes && !kernel.by_element && kernel.out_bytes == 2 && p.classes == 1 && p.column_tiles == 1 &&
           is_patch_box_line(out_chunks);
}

constexpr PatchConvLayout patch_conv_layout(const KernelConv& conv, const PatchAxis (&axes)[kMaxKernelDims],
                                            const PatchTile& tile, const PatchConvKernel& kernel, int warp_rows) {
    PatchConvLayout p{};
    const Index in = kernel.backward_data ? conv.k : conv.c, out = kernel.backward_data ? conv.c : conv.k;
    p.product_groups = patch_product_groups(conv, kernel);
    p.products = kernel.merge / p.product_groups;
    p.in_channels = to_int(in * p.product_groups), p.out_channels = to_int(out * p.product_groups);
    p.chunks = p.in_channels * kernel.element_bytes / kPatchChunkBytes;
    p.column_tiles = (p.out_channels + kernel.columns - 1) / kernel.columns;
    p.classes = axes[0].classes * axes[1].classes * axes[2].classes;
    for (int c = 0; c < p.classes; ++c) p.steps += patch_class_steps(axes, c, p.chunks);
    if (kernel.backward_data) {  // a line for every input channel of a tap
        p.weight_pitch = patch_odd_chunks(kernel.columns * kernel.element_bytes);
        p.product_bytes = 2 * p.steps * kPatchMatrix * p.weight_pitch;
    } else {  // a line for every output channel
        p.weight_pitch = patch_odd_chunks(2 * p.steps * kPatchChunkBytes);
        p.product_bytes = kernel.columns * p.weight_pitch;
    }
    p.patch = patch_shape(axes, tile, p.products * p.chunks);
    if (kernel.boxes) {
        p.patch.pitch = p.patch.chunks * kPatchChunkBytes;
        p.swizzle = patch_box_swizzle(p.patch.chunks);
        const int box = p.patch.images * p.patch.depth * p.patch.height * p.patch.phase * p.patch.pitch;
        // Whole blocks of the swizzle, or what the copy engine can begin at.
        const int unit = p.swizzle > 0 ? kPatchBoxAlign : p.patch.chunks * kPatchPlainBoxAlign;
        p.patch.plane = patch_round_up(box, unit) / p.patch.pitch;
    }
    p.drain_pitch = patch_odd_chunks(kernel.columns * kernel.out_bytes);
    constexpr int kPassBytes = kPatchStepRows * kPatchMatrix * 4;  // sums of one step
    const int drain = patch_drain_rows(warp_rows, p.drain_pitch) * p.drain_pitch;
    p.drain_bytes = drain > kPassBytes ? drain : kPassBytes;
    p.patch_bytes = p.patch.bytes();

    p.weights = 0;
    p.offsets = p.weights + p.products * p.product_bytes;
    p.class_table = p.offsets + patch_chunk_up(2 * p.steps * 4);
    p.tap_table = p.class_table + patch_chunk_up(p.classes * kPatchEntry);
    const int taps = axes[0].taps * axes[1].taps * axes[2].taps;
    p.row_table = p.tap_table + (p.classes == 1 ? 0 : patch_chunk_up(taps * kPatchEntry));
    p.drain = p.row_table + patch_chunk_up(kernel.tile_m * kPatchEntry);
    p.barriers = p.drain + kernel.warps * p.drain_bytes;
    const Index all_chunks = out * kernel.merge * kernel.out_bytes / kPatchChunkBytes;
    const int out_chunks = all_chunks <= kPatchMostBoxChunks ? to_int(all_chunks) : kPatchMostBoxChunks + 1;
    if (kernel.out_stages > 0 && patch_leaves_as_boxes(p, kernel, out_chunks)) {  // or by threads: one place for both
        p.out = patch_round_up(p.drain, kPatchBoxAlign);
        p.out_pitch = out_chunks * kPatchChunkBytes, p.out_swizzle = patch_box_swizzle(out_chunks);
        p.out_rows = tile.rows(), p.out_stages = kernel.out_stages;
        p.out_bytes = patch_round_up(p.out_rows * p.out_pitch, kPatchBoxAlign);
        const int end = p.out + p.out_stages * p.out_bytes + kPatchScratchBytes;
        p.barriers = end > p.barriers ? end : p.barriers;
    }
    p.patches = p.barriers;
    if (kernel.boxes) {  // whose planes are whole blocks of the swizzle
        p.patches = patch_round_up(p.barriers + kPatchMostBuffers * kPatchBarrierBytes, kPatchBoxAlign);
    }
    p.total_bytes = p.patches + kernel.buffers * p.patch_bytes;
    return p;
}

}  // namespace tilewise
