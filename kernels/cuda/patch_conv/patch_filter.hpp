// SPDX-License-Identifier: MIT
// The weights of a tile's products in shared memory, as the matrix instructions of patch_conv.hpp fetch them, and the tables
// that say where every step of the reduction finds its pixels. The reduction of a class of outputs runs over its taps, for
// each over the chunks of the input channels; two chunks are a step, whichever taps they belong to, and the last step of a class
// may have one only.
//   forward        a line for every output channel: the chunks in that order
//   backward data  a line for every input channel of a chunk: output channels; ldmatrix turns it round
// w is [group][k][tap][c] without gaps. All threads of the block call everything here together.
#pragma once
#include "../../common/patch_conv_layout.hpp"
#include "../../gpu/patch.hpp"

namespace tilewise::cuda::patch_conv {

template <class Config>
struct PatchFilter {
    using T = typename Config::B;
    static constexpr bool kBackward = Config::direction == Direction::backward_data;
    static constexpr int kChunk = kChunkBytes / T::bytes, kLanes = 32, kWarps = Config::threads / kLanes;
    static constexpr int kColumns = Config::tile_n / Config::wave_n;           // of a product
    static constexpr bool kWide = Config::vector_b * T::bytes == kChunkBytes;  // every group is a product by itself

    const KernelConv& conv;
    const PatchAxis (&axes)[kMaxKernelDims];
    const PatchConvLayout& plan;
    SharedAddress shared;

    // ---- Tables ----

    // Forward has one class; so has backward data without a stride, and rows are shared without one only.
    static constexpr bool kMayHaveClasses = kBackward && !Config::filter_3x3;
    TILEWISE_DEVICE bool has_classes() const { return kMayHaveClasses && plan.classes > 1; }
    // A class of outputs: its first step of the reduction, and its chunks, two of them a step.
    TILEWISE_DEVICE PatchEntry class_entry(int which) const {
        if (!has_classes()) return {0, u32(taps() * plan.chunks)};
        return load_entry(shared + plan.class_table + which * kPatchEntryBytes);
    }
    // Its chunks first; then, after a barrier, its first step.
    TILEWISE_DEVICE void count_classes() const {
        if (!has_classes() || thread_index() >= plan.classes) return;
        store_entry(shared + plan.class_table + thread_index() * kPatchEntryBytes,
                    {0, u32(patch_class_taps(axes, thread_index()) * plan.chunks)});
    }
    TILEWISE_DEVICE void number_classes() const {
        if (thread_index() >= plan.classes) return;
        u32 first = 0;
        TILEWISE_ROLLED
        for (int c = 0; c < thread_index(); ++c) {
            first += (load_entry(shared + plan.class_table + c * kPatchEntryBytes).offset + 1) / 2;
        }
        store_shared<4>(shared + plan.class_table + thread_index() * kPatchEntryBytes, Packet<4>{{first}});
    }

    // Where a tap is: its first chunk in the reduction, and the distance of its pixels in the patch, in bytes.
    template <bool in_class>
    TILEWISE_DEVICE PatchEntry locate(u32 tap) const {
        const u32 up = tap / u32(axes[2].taps), d = up / u32(axes[1].taps);
        const int w = int(tap - up * u32(axes[2].taps)), h = int(up - d * u32(axes[1].taps));
        const int distance =
            plan.patch.tap_distance(offset_of(0, int(d)), offset_of(1, h), offset_of(2, w)) * plan.patch.pitch;
        if constexpr (!in_class) return {tap * u32(plan.chunks), u32(distance)};
        const int which =
            (axes[0].class_of(int(d)) * axes[1].classes + axes[1].class_of(h)) * axes[2].classes + axes[2].class_of(w);
        const int place =
            (axes[0].place_of(int(d)) * axes[1].class_taps(h) + axes[1].place_of(h)) * axes[2].class_taps(w) +
            axes[2].place_of(w);
        return {2 * class_entry(which).place + u32(place * plan.chunks), u32(distance)};
    }
    TILEWISE_DEVICE int offset_of(int axis, int tap) const {
        return kBackward ? axes[axis].offset_of(tap) : tap * axes[axis].dilation;
    }
    // Strided backward data looks taps up, since these take a while to locate. Needs the class table.
    TILEWISE_DEVICE void make_tap_table() const {
        TILEWISE_ROLLED
        for (int tap = thread_index(); tap < taps(); tap += Config::threads) {
            store_entry(shared + plan.tap_table + tap * kPatchEntryBytes, locate<kBackward>(u32(tap)));
        }
    }
    TILEWISE_DEVICE u32 first_chunk(u32 tap) const {
        if (!has_classes()) return tap * u32(plan.chunks);
        return load_entry(shared + plan.tap_table + tap * kPatchEntryBytes).place;
    }
    TILEWISE_DEVICE int taps() const { return axes[0].taps * axes[1].taps * axes[2].taps; }

    // For every chunk of the reduction the bytes from an output's first pixel to it. Needs the tap table.
    TILEWISE_DEVICE void make_offsets() const {
        const SharedAddress table = shared + plan.offsets;
        TILEWISE_ROLLED
        for (u32 i = u32(thread_index()); i < u32(taps() * plan.chunks); i += Config::threads) {
            const u32 tap = i / u32(plan.chunks), chunk = i - tap * u32(plan.chunks);
            const PatchEntry at =
                has_classes() ? load_entry(shared + plan.tap_table + tap * kPatchEntryBytes) : locate<false>(tap);
            store_shared<4>(table + (at.place + chunk) * 4, Packet<4>{{at.offset + chunk * kChunkBytes}});
        }
        // Where a class has an odd number, the last step reads something all the same.
        TILEWISE_ROLLED
        for (int c = thread_index(); c < (kBackward ? plan.classes : 1); c += Config::threads) {
            const PatchEntry chunks = class_entry(c);
            if (chunks.offset % 2 != 0) store_shared<4>(table + (2 * chunks.place + chunks.offset) * 4, Packet<4>{{0}});
        }
    }

    // ---- Weights ----

    // Loads the weights of the tile's groups, `from` being the first group's; columns from `first_column` on.
    TILEWISE_DEVICE void load(const void* from, int first_column) const {
        if constexpr (kWide) {
            load_wide(static_cast<const char*>(from), first_column);
        } else {
            load_diagonal(static_cast<const typename T::Storage*>(from));
        }
    }

private:
    TILEWISE_DEVICE SharedAddress chunk_address(int product, int chunk, int line) const {
        const SharedAddress base = shared + plan.weights + product * plan.product_bytes;
        return kBackward ? base + (chunk * kPatchMatrix + line) * plan.weight_pitch
                         : base + line * plan.weight_pitch + chunk * kChunkBytes;
    }

    // Whole chunks: a lane stays at its tap and channels, and the warps share the lines.
    TILEWISE_DEVICE void load_wide(const char* from, int first_column) const {
        const int c = int(conv.c), k = int(conv.k);
        const int line_bytes = taps() * c * T::bytes;  // of one k
        const int per_tap = kBackward ? kColumns / kChunk : plan.chunks;
        const int first_chunk_of = kBackward ? first_column / kChunk : 0, last_chunk = c / kChunk;
        const int first_k = kBackward ? 0 : first_column, lines = kBackward ? k : kColumns;
        const int warp = thread_index() / kLanes;
        TILEWISE_ROLLED
        for (int i = lane_index(); i < taps() * per_tap; i += kLanes) {
            const int tap = int(u32(i) / u32(per_tap)), chunk = i - tap * per_tap,
                      memory_chunk = first_chunk_of + chunk;
            const int reduction_chunk = int(first_chunk(u32(tap)));
            TILEWISE_ROLLED
            for (int product = 0; product < plan.products; ++product) {
                const char* source = from + Index(product * k + first_k) * line_bytes +
                                     (Index(tap) * c + memory_chunk * kChunk) * T::bytes;
                TILEWISE_UNROLL_4
                for (int line = warp; line < lines; line += kWarps) {
                    const bool is_there = memory_chunk < last_chunk && first_k + line < k;
                    const SharedAddress to =
                        kBackward ? chunk_address(product, reduction_chunk + line / kPatchMatrix, line % kPatchMatrix) +
                                        chunk * kChunkBytes
                                  : chunk_address(product, reduction_chunk + chunk, line);
                    copy_async<kChunkBytes>(to, source + Index(line) * line_bytes, is_there ? kChunkBytes : 0);
                }
            }
        }
    }

    // Element by element into zeros: the weights of several groups on the diagonal of one product.
    TILEWISE_DEVICE void load_diagonal(const typename T::Storage* from) const {
        TILEWISE_ROLLED
        for (int b = thread_index() * kChunkBytes; b < plan.products * plan.product_bytes;
             b += Config::threads * kChunkBytes) {
            store_shared<kChunkBytes>(shared + plan.weights + b, zero_packet<kChunkBytes>());
        }
        sync_block();
        // A lane stays at its taps and channels, and the warps share the lines. Waiting for memory is all the time it takes: what
        // a thread has to fetch is on its way at once, for 3 x 3 taps of up to 8 channels all of it.
        constexpr int kPlaces = 3, kLines = 4;
        const int c = int(conv.c), row = taps() * c, lines = plan.products * plan.product_groups * int(conv.k);
        TILEWISE_ROLLED
        for (int i = lane_index(); i < row; i += kPlaces * kLanes) {
            TILEWISE_ROLLED
            for (int first = thread_index() / kLanes; first < lines; first += kLines * kWarps) {
                typename T::Storage held[kPlaces][kLines];
                TILEWISE_UNROLL
                for (int p = 0; p < kPlaces; ++p) {
                    TILEWISE_UNROLL
                    for (int j = 0; j < kLines; ++j) {
                        const int line = first + j * kWarps, at = i + p * kLanes;
                        if (line < lines && at < row) held[p][j] = from[line * row + at];
                    }
                }
                const Line begin(conv, plan, first);
                const int count = (lines - first + kWarps - 1) / kWarps;
                TILEWISE_UNROLL
                for (int p = 0; p < kPlaces; ++p) {
                    const int at = i + p * kLanes, tap = int(u32(at) / u32(c));
                    if (at < row) put_lines(held[p], count < kLines ? count : kLines, begin, at - tap * c, tap);
                }
            }
        }
    }
    // A line of weights, of all the tile's: whose it is.
    struct Line {
        int product, member, filter;  // the group within the product, the output channel within the group

        TILEWISE_DEVICE Line(const KernelConv& conv, const PatchConvLayout& plan, int index) {
            const int group = int(u32(index) / u32(conv.k));
            filter = index - group * int(conv.k);
            product = int(u32(group) / u32(plan.product_groups));
            member = group - product * plan.product_groups;
        }
        TILEWISE_DEVICE void advance(const KernelConv& conv, const PatchConvLayout& plan, int by) {
            for (filter += by; filter >= int(conv.k);) {
                filter -= int(conv.k);
                if (++member == plan.product_groups) member = 0, ++product;
            }
        }
    };
    // Rolled, the elements moving up in their registers: it runs once.
    template <int most>
    TILEWISE_DEVICE void put_lines(typename T::Storage (&held)[most], int count, Line line, int channel,
                                   int tap) const {
        const int c = int(conv.c), k = int(conv.k), reduction_chunk = int(first_chunk(u32(tap)));
        TILEWISE_ROLLED
        for (int j = 0; j < count; ++j) {
            const int in = line.member * (kBackward ? k : c) + (kBackward ? line.filter : channel);
            const int out = line.member * (kBackward ? c : k) + (kBackward ? channel : line.filter);
            const int chunk = reduction_chunk + in / kChunk, place = in % kChunk;
            const SharedAddress to = kBackward ? chunk_address(line.product, chunk, place) + out * T::bytes
                                               : chunk_address(line.product, chunk, out) + place * T::bytes;
            store_shared<T::bytes>(to, __builtin_bit_cast(Packet<T::bytes>, held[0]));
            TILEWISE_UNROLL
            for (int n = 1; n < most; ++n) held[n - 1] = held[n];
            line.advance(conv, plan, kWarps);
        }
    }
};

}  // namespace tilewise::cuda::patch_conv
