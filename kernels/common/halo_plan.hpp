// SPDX-License-Identifier: MIT
// What a block of the halo kernels of forward and backward data (cuda/halo_conv.hpp) keeps in shared memory, and how its
// reduction is cut into steps. The host checks with it whether a problem fits a kernel (config/halo_fit.cpp) and chooses the
// tile (run/halo_grid.cpp); the kernel finds its sections with it.
//
// The channels of the staged tensor that belong to one tile are those of `merge` groups. A product is of all input with all
// output channels of some of these, the weights between different groups being zero: as many groups as fit its columns, and at
// least so many that their channels are whole 16-byte chunks. Kernels that read weights in chunks have products of one group.
#pragma once
#include "halo_shape.hpp"

namespace tilewise {

// What a config fixes.
struct HaloKernel {
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
struct HaloPlan {
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
    HaloPatchShape patch;
};

inline constexpr int kHaloMatrix = 8, kHaloStepRows = 16;  // lines of a chunk of weights; rows of an mma step
inline constexpr int kHaloMostClasses = 64, kHaloEntry = 8;
inline constexpr int kHaloMostChunks = 32;     // of a pixel's channels: a lane copies one
inline constexpr int kHaloMostBox = 256;       // positions of a box along each axis
inline constexpr int kHaloMostBoxStep = 8;     // from column to column of a residue
inline constexpr int kHaloScratchBytes = 512;  // for what a matrix store of a warp has to put somewhere
inline constexpr int kHaloBoxAlign = 1024, kHaloPlainBoxAlign = 128, kHaloBarrierBytes = 8, kHaloMostBuffers = 8;
constexpr int halo_round_up(int bytes, int unit) { return (bytes + unit - 1) / unit * unit; }
// Pixels that the copy engine can put so that eight neighbours are on banks of their own: swizzled, or an odd number of chunks.
inline constexpr int kHaloMostBoxChunks = 31;
constexpr int halo_box_swizzle(int chunks) { return chunks % 2 != 0 ? 0 : (chunks - 1) * kHaloChunkBytes; }
constexpr bool is_halo_box_line(int chunks) {
    return chunks == 2 || chunks == 4 || chunks == 8 || (chunks % 2 != 0 && chunks <= kHaloMostBoxChunks);
}

constexpr int halo_odd_chunks(int bytes) {
    return ((bytes + kHaloChunkBytes - 1) / kHaloChunkBytes | 1) * kHaloChunkBytes;
}
constexpr int halo_chunk_up(int bytes) { return (bytes + kHaloChunkBytes - 1) / kHaloChunkBytes * kHaloChunkBytes; }

// Groups of a product; more than `merge` where no number of groups fits.
constexpr int halo_product_groups(const KernelConv& conv, const HaloKernel& kernel) {
    const Index in = kernel.backward_data ? conv.k : conv.c, out = kernel.backward_data ? conv.c : conv.k;
    int groups = 1;
    while (groups <= kernel.merge && (in * groups * kernel.element_bytes % kHaloChunkBytes != 0 ||
                                      (!kernel.by_element && out * groups * kernel.out_bytes % kHaloChunkBytes != 0))) {
        groups *= 2;
    }
    while (kernel.diagonal && 2 * groups <= kernel.merge && 2 * groups * out <= kernel.columns) groups *= 2;
    return groups;
}

constexpr int halo_class_taps(const HaloAxis (&axes)[kMaxKernelDims], int which) {
    const int w = which % axes[2].classes, up = which / axes[2].classes;
    return axes[2].taps_of_class(w) * axes[1].taps_of_class(up % axes[1].classes) *
           axes[0].taps_of_class(up / axes[1].classes);
}
constexpr int halo_class_steps(const HaloAxis (&axes)[kMaxKernelDims], int which, int chunks) {
    return (halo_class_taps(axes, which) * chunks + 1) / 2;
}

// The rows of the tile that leave together, of those of a warp: more where there are few columns, so that all lanes store.
constexpr int halo_drain_rows(int warp_rows, int pitch) {
    constexpr int kBytes = 2048;
    int rows = warp_rows;
    while (rows > kHaloStepRows && (rows * pitch > kBytes || rows % (2 * kHaloStepRows) != 0)) rows -= kHaloStepRows;
    return rows;
}

// Whether a tile's results are a box of the output: all channels of its groups, and of one class.
constexpr bool halo_leaves_as_boxes(const HaloPlan& p, const HaloKernel& kernel, int out_chunks) {
    return kernel.boxes && !kernel.by_element && kernel.out_bytes == 2 && p.classes == 1 && p.column_tiles == 1 &&
           is_halo_box_line(out_chunks);
}

constexpr HaloPlan halo_plan(const KernelConv& conv, const HaloAxis (&axes)[kMaxKernelDims], const HaloTile& tile,
                             const HaloKernel& kernel, int warp_rows) {
    HaloPlan p{};
    const Index in = kernel.backward_data ? conv.k : conv.c, out = kernel.backward_data ? conv.c : conv.k;
    p.product_groups = halo_product_groups(conv, kernel);
    p.products = kernel.merge / p.product_groups;
    p.in_channels = to_int(in * p.product_groups), p.out_channels = to_int(out * p.product_groups);
    p.chunks = p.in_channels * kernel.element_bytes / kHaloChunkBytes;
    p.column_tiles = (p.out_channels + kernel.columns - 1) / kernel.columns;
    p.classes = axes[0].classes * axes[1].classes * axes[2].classes;
    for (int c = 0; c < p.classes; ++c) p.steps += halo_class_steps(axes, c, p.chunks);
    if (kernel.backward_data) {  // a line for every input channel of a tap
        p.weight_pitch = halo_odd_chunks(kernel.columns * kernel.element_bytes);
        p.product_bytes = 2 * p.steps * kHaloMatrix * p.weight_pitch;
    } else {  // a line for every output channel
        p.weight_pitch = halo_odd_chunks(2 * p.steps * kHaloChunkBytes);
        p.product_bytes = kernel.columns * p.weight_pitch;
    }
    p.patch = halo_patch_shape(axes, tile, p.products * p.chunks);
    if (kernel.boxes) {
        p.patch.pitch = p.patch.chunks * kHaloChunkBytes;
        p.swizzle = halo_box_swizzle(p.patch.chunks);
        const int box = p.patch.images * p.patch.depth * p.patch.height * p.patch.phase * p.patch.pitch;
        // Whole blocks of the swizzle, or what the copy engine can begin at.
        const int unit = p.swizzle > 0 ? kHaloBoxAlign : p.patch.chunks * kHaloPlainBoxAlign;
        p.patch.plane = halo_round_up(box, unit) / p.patch.pitch;
    }
    p.drain_pitch = halo_odd_chunks(kernel.columns * kernel.out_bytes);
    constexpr int kPassBytes = kHaloStepRows * kHaloMatrix * 4;  // sums of one step
    const int drain = halo_drain_rows(warp_rows, p.drain_pitch) * p.drain_pitch;
    p.drain_bytes = drain > kPassBytes ? drain : kPassBytes;
    p.patch_bytes = p.patch.bytes();

    p.weights = 0;
    p.offsets = p.weights + p.products * p.product_bytes;
    p.class_table = p.offsets + halo_chunk_up(2 * p.steps * 4);
    p.tap_table = p.class_table + halo_chunk_up(p.classes * kHaloEntry);
    const int taps = axes[0].taps * axes[1].taps * axes[2].taps;
    p.row_table = p.tap_table + (p.classes == 1 ? 0 : halo_chunk_up(taps * kHaloEntry));
    p.drain = p.row_table + halo_chunk_up(kernel.tile_m * kHaloEntry);
    p.barriers = p.drain + kernel.warps * p.drain_bytes;
    const Index all_chunks = out * kernel.merge * kernel.out_bytes / kHaloChunkBytes;
    const int out_chunks = all_chunks <= kHaloMostBoxChunks ? to_int(all_chunks) : kHaloMostBoxChunks + 1;
    if (kernel.out_stages > 0 && halo_leaves_as_boxes(p, kernel, out_chunks)) {  // or by threads: one place for both
        p.out = halo_round_up(p.drain, kHaloBoxAlign);
        p.out_pitch = out_chunks * kHaloChunkBytes, p.out_swizzle = halo_box_swizzle(out_chunks);
        p.out_rows = tile.rows(), p.out_stages = kernel.out_stages;
        p.out_bytes = halo_round_up(p.out_rows * p.out_pitch, kHaloBoxAlign);
        const int end = p.out + p.out_stages * p.out_bytes + kHaloScratchBytes;
        p.barriers = end > p.barriers ? end : p.barriers;
    }
    p.patches = p.barriers;
    if (kernel.boxes) {  // whose planes are whole blocks of the swizzle
        p.patches = halo_round_up(p.barriers + kHaloMostBuffers * kHaloBarrierBytes, kHaloBoxAlign);
    }
    p.total_bytes = p.patches + kernel.buffers * p.patch_bytes;
    return p;
}

// All that a launch needs beside the problem: worked out once on the host, since every block would take longer for it than for
// its first tile. Ints only: it travels as KernelArgs::geometry.
struct HaloLaunch {
    HaloAxis axes[kMaxKernelDims];
    HaloTile tile;
    HaloPlan plan;
    int tiles[kMaxKernelDims], image_tiles;  // of pixels, along each axis
    // Tiles of a block; so many of the first blocks have one more. Blocks that follow each other either go on in the same slab, or
    // (beside > 1) do the same tiles of as many slabs, whose pixels then come from memory together.
    int units, longer, beside;
};
static_assert(sizeof(HaloLaunch) <= sizeof(int) * kMaxKernelGeometry);

// `blocks` is at most the number of tiles, and a multiple of `beside`, which is 1 or the number of slabs.
constexpr HaloLaunch halo_launch(const KernelConv& conv, const HaloTile& tile, const HaloKernel& kernel, int warp_rows,
                                 int blocks, int beside) {
    HaloLaunch launch{};
    for (int d = 0; d < kMaxKernelDims; ++d) {
        launch.axes[d] = halo_axis(conv, d, kernel.backward_data);
        launch.tiles[d] = (launch.axes[d].class_outputs() + tile.extent[d] - 1) / tile.extent[d];
    }
    launch.tile = tile;
    launch.plan = halo_plan(conv, launch.axes, tile, kernel, warp_rows);
    launch.image_tiles = (to_int(conv.images) + tile.images - 1) / tile.images;
    const Index pixels = Index(launch.image_tiles) * launch.tiles[0] * launch.tiles[1] * launch.tiles[2];
    const Index all = beside > 1 ? pixels : pixels * launch.plan.column_tiles * (conv.groups / kernel.merge);
    launch.units = to_int(all / (blocks / beside)), launch.longer = to_int(all % (blocks / beside));
    launch.beside = beside;
    return launch;
}

}  // namespace tilewise
