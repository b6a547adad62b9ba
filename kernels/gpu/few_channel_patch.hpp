// SPDX-License-Identifier: MIT
// Staging of a patch of x with one to four channels (the first layers of networks; patch_wgrad.hpp): every pixel takes eight bytes of
// shared memory, its channels and zeros, whatever their alignment in memory. Loads go through registers, since no asynchronous
// copy is that narrow: a thread has four pixels under way. The interface is that of StagedPatch (patch.hpp).
#pragma once
#include "../common/patch_shape.hpp"
#include "patch.hpp"

namespace tilewise::gpu {

template <class T, int threads>
struct FewChannelPatch {
    static_assert(T::bytes == 2, "four channels are eight bytes");
    PatchShape shape;
    SharedAddress table;  // pixels() entries; offsets in elements

    TILEWISE_DEVICE void make_table(const PatchAxis (&axes)[kMaxKernelDims], const KernelActivation& from) const {
        TILEWISE_ROLLED
        for (int p = thread_index(); p < shape.pixels(); p += threads) {
            const int rest = p / shape.width(), w = p - rest * shape.width();
            const int up = rest / shape.height, h = rest - up * shape.height;
            const int image = up / shape.depth, d = up - image * shape.depth;
            const Index pixel = (Index(d) * axes[1].inputs + h) * axes[2].inputs + w;
            const Index element = image * from.image_stride + pixel * from.pixel_stride;
            const bool is_there = w < shape.columns;
            store_entry(table + p * kPatchEntryBytes,
                        {is_there ? patch_place(image, d, h, w) : kPatchNowhere, u32(element)});
        }
    }

    TILEWISE_DEVICE void copy(SharedAddress to, const void* first, const PatchAxis (&axes)[kMaxKernelDims], int images,
                              const KernelActivation& from, const PatchOrigin& origin) const {
        int at[kMaxKernelDims];
        TILEWISE_UNROLL
        for (int d = 0; d < kMaxKernelDims; ++d) at[d] = origin.output[d] * axes[d].in_step + axes[d].first;
        const PatchBounds inside =
            patch_bounds({origin.image, shape.images, images}, {at[0], shape.depth, axes[0].inputs},
                         {at[1], shape.height, axes[1].inputs}, {at[2], shape.columns, axes[2].inputs});
        const Index pixel = (Index(at[0]) * axes[1].inputs + at[1]) * axes[2].inputs + at[2];
        const u16* base = static_cast<const u16*>(first) + origin.image * from.image_stride + pixel * from.pixel_stride;
        const int channels = int(from.group_stride);  // neighbours, and no more than four
        constexpr int kAhead = 4;
        TILEWISE_ROLLED
        for (int p = thread_index(); p < shape.pixels(); p += kAhead * threads) {
            u32 held[kAhead][kFewChannels];
            TILEWISE_UNROLL
            for (int i = 0; i < kAhead; ++i) {
                const int own = p + i * threads;
                const bool is_own = own < shape.pixels();
                const PatchEntry entry = load_entry(table + (is_own ? own : 0) * kPatchEntryBytes);
                const bool is_there = is_own && inside.holds(entry.place);
                TILEWISE_UNROLL
                for (int c = 0; c < kFewChannels; ++c) {
                    held[i][c] = is_there && c < channels ? base[entry.offset + u32(c)] : 0;
                }
            }
            TILEWISE_UNROLL
            for (int i = 0; i < kAhead; ++i) {
                const int own = p + i * threads;
                const Packet<8> packed{{held[i][0] | held[i][1] << 16, held[i][2] | held[i][3] << 16}};
                if (own < shape.pixels()) store_shared<8>(to + own * kFewChannelBytes, packed);
            }
        }
    }
};

}  // namespace tilewise::gpu
