// SPDX-License-Identifier: MIT
// Staging for the patch kernels (patch_conv.hpp, patch_wgrad.hpp): the patch of input pixels that a tile of output pixels reads
// (common/patch_shape.hpp) comes to shared memory once, by asynchronous copies, and every tap reads it from there at a fixed
// distance. What does not depend on the tile is worked out once per block into tables in shared memory:
//   patch table  for every stored pixel its coordinates and its place in global memory
//   row table    for every row of the tile its coordinates and its place among the output's pixels
// Coordinates are words of four guarded fields, so that whether a pixel is inside the tensor is a handful of instructions.
// All threads of the block call everything here together.
#pragma once
#include "../common/patch_shape.hpp"
#include "packet.hpp"
#include "tile_layout.hpp"

namespace tilewise::gpu {

// ---- Coordinates: image, depth, height, column ----

inline constexpr int kPatchHeightShift = kPatchColumnBits + 1,
                     kPatchDepthShift = kPatchHeightShift + kPatchHeightBits + 1,
                     kPatchImageShift = kPatchDepthShift + kPatchDepthBits + 1;
inline constexpr u32 kPatchGuards = 1u << kPatchColumnBits | 1u << (kPatchHeightShift + kPatchHeightBits) |
                                    1u << (kPatchDepthShift + kPatchDepthBits) |
                                    1u << (kPatchImageShift + kPatchImageBits);
inline constexpr u32 kPatchNowhere = ~kPatchGuards;  // beyond every bound: a pixel that is never there

TILEWISE_DEVICE int patch_image(u32 place) { return int(place >> kPatchImageShift); }
TILEWISE_DEVICE int patch_depth(u32 place) { return int(place >> kPatchDepthShift) & ((1 << kPatchDepthBits) - 1); }
TILEWISE_DEVICE int patch_height(u32 place) { return int(place >> kPatchHeightShift) & ((1 << kPatchHeightBits) - 1); }
TILEWISE_DEVICE int patch_column(u32 place) { return int(place) & ((1 << kPatchColumnBits) - 1); }
TILEWISE_DEVICE u32 patch_place(int image, int d, int h, int w) {
    return u32(image) << kPatchImageShift | u32(d) << kPatchDepthShift | u32(h) << kPatchHeightShift | u32(w);
}

// Which coordinates are inside: least <= place <= most in every field. Least beyond most means that nothing is.
struct PatchBounds {
    u32 least, most;

    TILEWISE_DEVICE bool holds(u32 place) const {
        return (((place | kPatchGuards) - least) & ((most | kPatchGuards) - place) & kPatchGuards) == kPatchGuards;
    }
};

// Of `extent` positions from `origin` on, those in [0, size): least and most of a field.
struct PatchRange {
    int least, most;
    TILEWISE_DEVICE PatchRange(int origin, int extent, int size) {
        least = origin < 0 ? -origin : 0;
        most = size - 1 - origin < extent - 1 ? size - 1 - origin : extent - 1;
        if (least > most) least = extent, most = 0;  // extent fits a field
    }
};
TILEWISE_DEVICE PatchBounds patch_bounds(const PatchRange& i, const PatchRange& d, const PatchRange& h,
                                         const PatchRange& w) {
    return {patch_place(i.least, d.least, h.least, w.least), patch_place(i.most, d.most, h.most, w.most)};
}

// Two words of shared memory, of one table entry.
struct PatchEntry {
    u32 place, offset;
};
inline constexpr int kPatchEntryBytes = 8;
TILEWISE_DEVICE PatchEntry load_entry(SharedAddress from) {
    const Packet<8> p = load_shared<8>(from);
    return {p.words[0], p.words[1]};
}
TILEWISE_DEVICE void store_entry(SharedAddress to, const PatchEntry& entry) {
    store_shared<8>(to, Packet<8>{{entry.place, entry.offset}});
}

// Where a tile is: its first image, and the first output (of a class) along each axis.
struct PatchOrigin {
    int image;
    int output[kMaxKernelDims];
};

// The tiles of a problem: images slowest, columns fastest.
struct PatchTiles {
    PatchTile tile;
    int count[kMaxKernelDims], images;

    TILEWISE_DEVICE PatchTiles(const PatchAxis (&axes)[kMaxKernelDims], const PatchTile& of, int all_images)
        : tile(of) {
        TILEWISE_UNROLL
        for (int d = 0; d < kMaxKernelDims; ++d) {
            count[d] = (axes[d].class_outputs() + of.extent[d] - 1) / of.extent[d];
        }
        images = (all_images + of.images - 1) / of.images;
    }
    TILEWISE_DEVICE int total() const { return images * count[0] * count[1] * count[2]; }
    TILEWISE_DEVICE PatchOrigin origin(int index) const {
        PatchOrigin o;
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
struct StagedPatch {
    static constexpr int kChunk = kChunkBytes / T::bytes;  // elements

    PatchShape shape;
    SharedAddress table;  // pixels() entries; offsets in chunks

    TILEWISE_DEVICE static int table_bytes(const PatchShape& shape) { return shape.pixels() * kPatchEntryBytes; }

    // Fills the table: a warp takes a line of pixels at a time. A block's barrier must follow before the first copy.
    TILEWISE_DEVICE void make_table(const PatchAxis (&axes)[kMaxKernelDims], const KernelActivation& from) const {
        constexpr int lanes = kArchLanes;
        const int lines = shape.images * shape.depth * shape.height;
        TILEWISE_ROLLED
        for (int line = thread_index() / lanes; line < lines; line += threads / lanes) {
            const int up = line / shape.height, h = line - up * shape.height;
            const int image = up / shape.depth, d = up - image * shape.depth;
            const Index first =
                image * from.image_stride + (Index(d) * axes[1].inputs + h) * axes[2].inputs * from.pixel_stride;
            SharedAddress entry = table + (line * shape.width() + lane_index()) * kPatchEntryBytes;
            TILEWISE_ROLLED
            for (int stored = lane_index(); stored < shape.width();
                 stored += lanes, entry += lanes * kPatchEntryBytes) {
                const int residue = shape.steps[2] == 1 ? 0 : stored / shape.phase;
                const int w = (stored - residue * shape.phase) * shape.steps[2] + residue;
                const bool is_there = w < shape.columns;  // the last column of a residue may not be
                const Index element = first + w * from.pixel_stride;
                store_entry(entry, {is_there ? patch_place(image, d, h, w) : kPatchNowhere, u32(element / kChunk)});
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
    TILEWISE_DEVICE void copy(SharedAddress to, const void* first, const PatchAxis (&axes)[kMaxKernelDims], int images,
                              const KernelActivation& from, const PatchOrigin& origin) const {
        copy(to, first, axes, images, from, origin, share());
    }
    TILEWISE_DEVICE void copy(SharedAddress to, const void* first, const PatchAxis (&axes)[kMaxKernelDims], int images,
                              const KernelActivation& from, const PatchOrigin& origin, const Share& mine) const {
        int at[kMaxKernelDims];
        TILEWISE_UNROLL
        for (int d = 0; d < kMaxKernelDims; ++d) at[d] = origin.output[d] * axes[d].in_step + axes[d].first;
        const PatchBounds inside =
            patch_bounds({origin.image, shape.images, images}, {at[0], shape.depth, axes[0].inputs},
                         {at[1], shape.height, axes[1].inputs}, {at[2], shape.columns, axes[2].inputs});
        const Index pixel = (Index(at[0]) * axes[1].inputs + at[1]) * axes[2].inputs + at[2];
        const char* base = static_cast<const char*>(first) +
                           (origin.image * from.image_stride + pixel * from.pixel_stride) * T::bytes +
                           mine.chunk * kChunkBytes;
        if (mine.first >= mine.pixels) return;
        SharedAddress target = to + mine.first * shape.pitch + mine.chunk * kChunkBytes;
        SharedAddress entry_at = table + mine.first * kPatchEntryBytes;
        const SharedAddress end = table + shape.pixels() * kPatchEntryBytes;
        const int entry_step = mine.pixels * kPatchEntryBytes, target_step = mine.pixels * shape.pitch;
        TILEWISE_UNROLL_4
        for (; entry_at < end; entry_at += entry_step, target += target_step) {
            const PatchEntry entry = load_entry(entry_at);
            copy_async<kChunkBytes>(target, base + u64(entry.offset) * kChunkBytes,
                                    inside.holds(entry.place) ? kChunkBytes : 0);
        }
    }
};

// ---- The patch, line by line ----

// Staging without a table: a warp copies a line of columns at a time, each lane a chunk of every so many of its pixels, so that
// from copy to copy all addresses grow by the same. At most as many chunks as a warp has lanes.
template <class T, int threads>
struct PatchLines {
    static constexpr int kLanes = kArchLanes, kWarps = threads / kLanes;

    const PatchShape& shape;
    u32 pixels, pixel, chunk;  // of a line at a time; this lane's first, and its chunk
    u32 image, d, h;           // of the warp's first line

    TILEWISE_DEVICE explicit PatchLines(const PatchShape& of) : shape(of) {
        const u32 chunks = u32(shape.chunks), lane = u32(lane_index()), warp = u32(thread_index()) / kLanes;
        pixels = kLanes / chunks;
        pixel = lane / chunks;
        chunk = lane - pixel * chunks;
        const u32 up = warp / u32(shape.height);
        h = warp - up * u32(shape.height);
        image = up / u32(shape.depth);
        d = up - image * u32(shape.depth);
    }

    // As StagedPatch::copy.
    TILEWISE_DEVICE void copy(SharedAddress to, const void* first, const PatchAxis (&axes)[kMaxKernelDims], int images,
                              const KernelActivation& from, const PatchOrigin& origin) const {
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
struct PatchRows {
    SharedAddress table;  // tile_rows entries; offsets in pixels of the output
    static constexpr int kTableBytes = tile_rows * kPatchEntryBytes;

    TILEWISE_DEVICE void make_table(const PatchAxis (&axes)[kMaxKernelDims], const PatchTile& tile) const {
        TILEWISE_ROLLED
        for (int row = thread_index(); row < tile_rows; row += threads) {
            int at[kMaxKernelDims];
            const int image = decode(tile, row, at);
            const int pixel =
                ((image * axes[0].outputs + at[0] * axes[0].classes) * axes[1].outputs + at[1] * axes[1].classes) *
                    axes[2].outputs +
                at[2] * axes[2].classes;
            const bool is_there = row < tile.rows();
            store_entry(
                table + row * kPatchEntryBytes,
                {is_there ? patch_place(image, at[0], at[1], at[2]) : kPatchNowhere, u32(is_there ? pixel : 0)});
        }
    }
    // The first pixel that a row reads, in bytes from the patch's start; rows past the tile's last read what the first does.
    // Needs the table.
    TILEWISE_DEVICE u32 patch_offset(const PatchShape& shape, int row) const {
        const u32 place = load_entry(table + row * kPatchEntryBytes).place;
        if (place == kPatchNowhere) return 0;
        return u32(shape.pixel_of(patch_image(place), patch_depth(place), patch_height(place), patch_column(place)) *
                   shape.pitch);
    }
    // Its image, and its coordinates within it.
    static TILEWISE_DEVICE int decode(const PatchTile& tile, int row, int (&at)[kMaxKernelDims]) {
        TILEWISE_UNROLL
        for (int d = kMaxKernelDims - 1; d >= 0; --d) {
            const int next = int(u32(row) / u32(tile.extent[d]));
            at[d] = row - next * tile.extent[d];
            row = next;
        }
        return row;
    }
};

TILEWISE_DEVICE PatchTile patch_tile(const KernelArgs& args) {
    return {args.patch[0], {args.patch[1], args.patch[2], args.patch[3]}};
}

}  // namespace tilewise::gpu
