// SPDX-License-Identifier: MIT
// Staging for the halo kernels (halo_conv.hpp, halo_weight.hpp): the patch of input pixels that a tile of output pixels reads
// (common/halo_shape.hpp) comes to shared memory once, by asynchronous copies, and every tap reads it from there at a fixed
// distance. What does not depend on the tile is worked out once per block into tables in shared memory:
//   patch table  for every stored pixel its coordinates and its place in global memory
//   row table    for every row of the tile its coordinates and its place among the output's pixels
// Coordinates are words of four guarded fields, so that whether a pixel is inside the tensor is a handful of instructions.
// All threads of the block call everything here together.
#pragma once
#include "../common/halo_shape.hpp"
#include "primitives.hpp"
#include "tile_layout.hpp"

namespace tilewise::cuda {

// ---- Coordinates: image, depth, height, column ----

inline constexpr int kHaloHeightShift = kHaloColumnBits + 1, kHaloDepthShift = kHaloHeightShift + kHaloHeightBits + 1,
                     kHaloImageShift = kHaloDepthShift + kHaloDepthBits + 1;
inline constexpr u32 kHaloGuards = 1u << kHaloColumnBits | 1u << (kHaloHeightShift + kHaloHeightBits) |
                                   1u << (kHaloDepthShift + kHaloDepthBits) | 1u << (kHaloImageShift + kHaloImageBits);
inline constexpr u32 kHaloNowhere = ~kHaloGuards;  // beyond every bound: a pixel that is never there

TILEWISE_DEVICE int halo_image(u32 place) { return int(place >> kHaloImageShift); }
TILEWISE_DEVICE int halo_depth(u32 place) { return int(place >> kHaloDepthShift) & ((1 << kHaloDepthBits) - 1); }
TILEWISE_DEVICE int halo_height(u32 place) { return int(place >> kHaloHeightShift) & ((1 << kHaloHeightBits) - 1); }
TILEWISE_DEVICE int halo_column(u32 place) { return int(place) & ((1 << kHaloColumnBits) - 1); }
TILEWISE_DEVICE u32 halo_place(int image, int d, int h, int w) {
    return u32(image) << kHaloImageShift | u32(d) << kHaloDepthShift | u32(h) << kHaloHeightShift | u32(w);
}

// Which coordinates are inside: least <= place <= most in every field. Least beyond most means that nothing is.
struct HaloBounds {
    u32 least, most;

    TILEWISE_DEVICE bool holds(u32 place) const {
        return (((place | kHaloGuards) - least) & ((most | kHaloGuards) - place) & kHaloGuards) == kHaloGuards;
    }
};

// Of `extent` positions from `origin` on, those in [0, size): least and most of a field.
struct HaloRange {
    int least, most;
    TILEWISE_DEVICE HaloRange(int origin, int extent, int size) {
        least = origin < 0 ? -origin : 0;
        most = size - 1 - origin < extent - 1 ? size - 1 - origin : extent - 1;
        if (least > most) least = extent, most = 0;  // extent fits a field
    }
};
TILEWISE_DEVICE HaloBounds halo_bounds(const HaloRange& i, const HaloRange& d, const HaloRange& h, const HaloRange& w) {
    return {halo_place(i.least, d.least, h.least, w.least), halo_place(i.most, d.most, h.most, w.most)};
}

// Two words of shared memory, of one table entry.
struct HaloEntry {
    u32 place, offset;
};
inline constexpr int kHaloEntryBytes = 8;
TILEWISE_DEVICE HaloEntry load_entry(SharedAddress from) {
    const Packet<8> p = load_shared<8>(from);
    return {p.words[0], p.words[1]};
}
TILEWISE_DEVICE void store_entry(SharedAddress to, const HaloEntry& entry) {
    store_shared<8>(to, Packet<8>{{entry.place, entry.offset}});
}

// Where a tile is: its first image, and the first output (of a class) along each axis.
struct HaloOrigin {
    int image;
    int output[kMaxKernelDims];
};

// The tiles of a problem: images slowest, columns fastest.
struct HaloTiles {
    HaloTile tile;
    int count[kMaxKernelDims], images;

    TILEWISE_DEVICE HaloTiles(const HaloAxis (&axes)[kMaxKernelDims], const HaloTile& of, int all_images) : tile(of) {
        TILEWISE_UNROLL
        for (int d = 0; d < kMaxKernelDims; ++d) {
            count[d] = (axes[d].class_outputs() + of.extent[d] - 1) / of.extent[d];
        }
        images = (all_images + of.images - 1) / of.images;
    }
    TILEWISE_DEVICE int total() const { return images * count[0] * count[1] * count[2]; }
    TILEWISE_DEVICE HaloOrigin origin(int index) const {
        HaloOrigin o;
        TILEWISE_UNROLL
        for (int d = kMaxKernelDims - 1; d >= 0; --d) {
            const int next = count[d] == 1 ? index : index / count[d];
            o.output[d] = (index - next * count[d]) * tile.extent[d];
            index = next;
        }
        o.image = index * tile.images;
        return o;
    }
};

// ---- The patch ----

// Staging of one tensor's patches; `threads` of the block share the work.
template <class T, int threads>
struct HaloPatch {
    static constexpr int kChunk = kChunkBytes / T::bytes;  // elements

    HaloPatchShape shape;
    SharedAddress table;  // pixels() entries; offsets in chunks

    TILEWISE_DEVICE static int table_bytes(const HaloPatchShape& shape) { return shape.pixels() * kHaloEntryBytes; }

    // Fills the table: a warp takes a line of pixels at a time. A block's barrier must follow before the first copy.
    TILEWISE_DEVICE void make_table(const HaloAxis (&axes)[kMaxKernelDims], const KernelActivation& from) const {
        constexpr int lanes = 32;
        const int lines = shape.images * shape.depth * shape.height;
        TILEWISE_ROLLED
        for (int line = thread_index() / lanes; line < lines; line += threads / lanes) {
            const int up = line / shape.height, h = line - up * shape.height;
            const int image = up / shape.depth, d = up - image * shape.depth;
            const Index first =
                image * from.image_stride + (Index(d) * axes[1].inputs + h) * axes[2].inputs * from.pixel_stride;
            SharedAddress entry = table + (line * shape.width() + lane_index()) * kHaloEntryBytes;
            TILEWISE_ROLLED
            for (int stored = lane_index(); stored < shape.width(); stored += lanes, entry += lanes * kHaloEntryBytes) {
                const int residue = shape.steps[2] == 1 ? 0 : stored / shape.phase;
                const int w = (stored - residue * shape.phase) * shape.steps[2] + residue;
                const bool is_there = w < shape.columns;  // the last column of a residue may not be
                const Index element = first + w * from.pixel_stride;
                store_entry(entry, {is_there ? halo_place(image, d, h, w) : kHaloNowhere, u32(element / kChunk)});
            }
        }
    }

    // Which pixels and chunks are this thread's: neighbouring threads take neighbouring chunks of a pixel, and stay at theirs.
    struct Share {
        int pixels, first, chunk;  // of all threads at a time; this one's
    };
    TILEWISE_DEVICE Share share() const {
        const int pixel = thread_index() / shape.chunks;
        return {threads / shape.chunks, pixel, thread_index() - pixel * shape.chunks};
    }

    // The patch of the tile at `origin`, channels from `first` on (the address of channel 0 of the first group that is staged, of
    // image 0, pixel 0), into the buffer at `to`. What is outside of the tensor is zero. The caller commits.
    TILEWISE_DEVICE void copy(SharedAddress to, const void* first, const HaloAxis (&axes)[kMaxKernelDims], int images,
                              const KernelActivation& from, const HaloOrigin& origin) const {
        copy(to, first, axes, images, from, origin, share());
    }
    TILEWISE_DEVICE void copy(SharedAddress to, const void* first, const HaloAxis (&axes)[kMaxKernelDims], int images,
                              const KernelActivation& from, const HaloOrigin& origin, const Share& mine) const {
        int at[kMaxKernelDims];
        TILEWISE_UNROLL
        for (int d = 0; d < kMaxKernelDims; ++d) at[d] = origin.output[d] * axes[d].in_step + axes[d].first;
        const HaloBounds inside =
            halo_bounds({origin.image, shape.images, images}, {at[0], shape.depth, axes[0].inputs},
                        {at[1], shape.height, axes[1].inputs}, {at[2], shape.columns, axes[2].inputs});
        const Index pixel = (Index(at[0]) * axes[1].inputs + at[1]) * axes[2].inputs + at[2];
        const char* base = static_cast<const char*>(first) +
                           (origin.image * from.image_stride + pixel * from.pixel_stride) * T::bytes +
                           mine.chunk * kChunkBytes;
        if (mine.first >= mine.pixels) return;
        SharedAddress target = to + mine.first * shape.pitch + mine.chunk * kChunkBytes;
        SharedAddress entry_at = table + mine.first * kHaloEntryBytes;
        const SharedAddress end = table + shape.pixels() * kHaloEntryBytes;
        const int entry_step = mine.pixels * kHaloEntryBytes, target_step = mine.pixels * shape.pitch;
        TILEWISE_UNROLL_4
        for (; entry_at < end; entry_at += entry_step, target += target_step) {
            const HaloEntry entry = load_entry(entry_at);
            copy_async<kChunkBytes>(target, base + u64(entry.offset) * kChunkBytes,
                                    inside.holds(entry.place) ? kChunkBytes : 0);
        }
    }
};

// ---- The patch, line by line ----

// Staging without a table: a warp copies a line of columns at a time, each lane a chunk of every so many of its pixels, so that
// from copy to copy all addresses grow by the same. At most as many chunks as a warp has lanes.
template <class T, int threads>
struct HaloLines {
    static constexpr int kLanes = 32, kWarps = threads / kLanes;

    const HaloPatchShape& shape;
    u32 pixels, pixel, chunk;  // of a line at a time; this lane's first, and its chunk
    u32 image, d, h;           // of the warp's first line

    TILEWISE_DEVICE explicit HaloLines(const HaloPatchShape& of) : shape(of) {
        const u32 chunks = u32(shape.chunks), lane = u32(lane_index()), warp = u32(thread_index()) / kLanes;
        pixels = kLanes / chunks;
        pixel = lane / chunks;
        chunk = lane - pixel * chunks;
        const u32 up = warp / u32(shape.height);
        h = warp - up * u32(shape.height);
        image = up / u32(shape.depth);
        d = up - image * u32(shape.depth);
    }

    // As HaloPatch::copy.
    TILEWISE_DEVICE void copy(SharedAddress to, const void* first, const HaloAxis (&axes)[kMaxKernelDims], int images,
                              const KernelActivation& from, const HaloOrigin& origin) const {
        const u32 pixel_bytes = u32(from.pixel_stride) * T::bytes, step = u32(shape.steps[2]);
        int at[kMaxKernelDims];
        TILEWISE_UNROLL
        for (int i = 0; i < kMaxKernelDims; ++i) at[i] = origin.output[i] * axes[i].in_step + axes[i].first;
        const Index corner = (Index(at[0]) * axes[1].inputs + at[1]) * axes[2].inputs + at[2] + pixel * step;
        const char* const base = static_cast<const char*>(first) + origin.image * from.image_stride * T::bytes +
                                 corner * pixel_bytes + chunk * kChunkBytes;
        const Index image_bytes = from.image_stride * T::bytes;
        const u32 turn_bytes = pixels * step * pixel_bytes, turn_target = pixels * u32(shape.pitch);
        const u32 lines = u32(shape.images * shape.depth * shape.height);
        u32 of_image = image, of_depth = d, of_height = h;
        SharedAddress line_target = to + u32(thread_index()) / kLanes * u32(shape.width() * shape.pitch) +
                                    pixel * u32(shape.pitch) + chunk * kChunkBytes;
        TILEWISE_ROLLED
        for (u32 line = u32(thread_index()) / kLanes; line < lines; line += kWarps) {
            const bool is_line = int(of_image) < images - origin.image && u32(at[0]) + of_depth < u32(axes[0].inputs) &&
                                 u32(at[1]) + of_height < u32(axes[1].inputs);
            const u32 limit = is_line ? u32(axes[2].inputs) : 0;  // no column is inside of a line that is not
            const char* source = base + of_image * image_bytes +
                                 Index(of_depth * axes[1].inputs + of_height) * axes[2].inputs * pixel_bytes;
            SharedAddress target = line_target;
            TILEWISE_ROLLED
            for (u32 residue = 0; residue < step; ++residue) {
                copy_columns(source, target, u32(at[2]) + residue, limit, turn_bytes, turn_target, step, residue);
                source += pixel_bytes, target += u32(shape.phase * shape.pitch);
            }
            line_target += u32(kWarps * shape.width() * shape.pitch);
            for (of_height += kWarps; of_height >= u32(shape.height);) {
                of_height -= u32(shape.height);
                if (++of_depth == u32(shape.depth)) of_depth = 0, ++of_image;
            }
        }
    }

private:
    // The columns of one residue, the lane's first being number `pixel` of them.
    TILEWISE_DEVICE void copy_columns(const char* source, SharedAddress target, u32 first, u32 limit, u32 turn_bytes,
                                      u32 turn_target, u32 step, u32 residue) const {
        u32 column = residue + pixel * step;  // in the patch
        if (pixel >= pixels) column = u32(shape.columns);
        u32 inside = first + pixel * step;  // in the tensor, from its first column on
        TILEWISE_UNROLL_4
        for (; column < u32(shape.columns); column += pixels * step) {
            copy_async<kChunkBytes>(target, source, inside < limit ? kChunkBytes : 0);
            source += turn_bytes, target += turn_target, inside += pixels * step;
        }
    }
};

// ---- The rows of a tile ----

template <int tile_rows, int threads>
struct HaloRows {
    SharedAddress table;  // tile_rows entries; offsets in pixels of the output
    static constexpr int kTableBytes = tile_rows * kHaloEntryBytes;

    TILEWISE_DEVICE void make_table(const HaloAxis (&axes)[kMaxKernelDims], const HaloTile& tile) const {
        TILEWISE_ROLLED
        for (int row = thread_index(); row < tile_rows; row += threads) {
            int at[kMaxKernelDims];
            const int image = decode(tile, row, at);
            const int pixel =
                ((image * axes[0].outputs + at[0] * axes[0].classes) * axes[1].outputs + at[1] * axes[1].classes) *
                    axes[2].outputs +
                at[2] * axes[2].classes;
            const bool is_there = row < tile.rows();
            store_entry(table + row * kHaloEntryBytes,
                        {is_there ? halo_place(image, at[0], at[1], at[2]) : kHaloNowhere, u32(is_there ? pixel : 0)});
        }
    }
    // The first pixel that a row reads, in bytes from the patch's start; rows past the tile's last read what the first does.
    // Needs the table.
    TILEWISE_DEVICE u32 patch_offset(const HaloPatchShape& shape, int row) const {
        const u32 place = load_entry(table + row * kHaloEntryBytes).place;
        if (place == kHaloNowhere) return 0;
        return u32(shape.pixel_of(halo_image(place), halo_depth(place), halo_height(place), halo_column(place)) *
                   shape.pitch);
    }
    // Its image, and its coordinates within it.
    static TILEWISE_DEVICE int decode(const HaloTile& tile, int row, int (&at)[kMaxKernelDims]) {
        TILEWISE_UNROLL
        for (int d = kMaxKernelDims - 1; d >= 0; --d) {
            const int next = int(u32(row) / u32(tile.extent[d]));
            at[d] = row - next * tile.extent[d];
            row = next;
        }
        return row;
    }
};

TILEWISE_DEVICE HaloTile halo_tile(const KernelArgs& args) {
    return {args.patch[0], {args.patch[1], args.patch[2], args.patch[3]}};
}

}  // namespace tilewise::cuda
