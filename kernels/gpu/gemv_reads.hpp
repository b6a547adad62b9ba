// SPDX-License-Identifier: MIT
// How a product by a few vectors (gemv.hpp, gemv_rows.hpp) reads its operands, by the vector widths of its config.
// GemvReads: an access of the large operand is 16 bytes, or, where its vector is one element, the two aligned accesses that hold
// them (unaligned_chunk.hpp).
// StagedVectors: vectors that lie across k or begin anywhere, so that no access of 16 bytes brings neighbours along k. A warp
// reads the elements of its next step one by one, neighbouring lanes those that are neighbours in memory, while it multiplies those
// of this step. They pass through the warp's own shared memory, from which a lane has words of neighbours along k.
//   shared memory  vector by vector, each along k, 16 bytes apart so that lanes that write a few k of all vectors meet few banks
//   bytes moved    an element once for each warp that needs it, and as often to and from shared memory
#pragma once
#include "unaligned_chunk.hpp"

namespace tilewise::gpu {

// Vectors in registers.
template <int bytes, int vectors>
struct HeldVectors {
    Packet<bytes> packet[vectors];
    TILEWISE_DEVICE u32 word(int v, int w) const { return packet[v].words[w]; }
};

template <class Config>
struct GemvReads {
    using T = typename Config::A;  // of the same size as B's
    static constexpr int kElements = kChunkBytes / T::bytes;
    static constexpr int kLarge = Config::swap_ab ? Config::vector_b : Config::vector_a;
    static constexpr int kSmall = Config::swap_ab ? Config::vector_a : Config::vector_b;
    static constexpr bool kAnywhere = kLarge == 1;  // lines of the large operand begin anywhere
    static constexpr bool kStaged = kSmall == 1;
    static constexpr bool kVectorsAlongK = Config::swap_ab ? Config::a_row : !Config::b_row;
    static_assert(kLarge == kElements || (kAnywhere && T::bytes == 2),
                  "accesses of 16 bytes, or 16 bits that begin anywhere");
    static_assert((kSmall == kElements && kVectorsAlongK) || kStaged, "vectors along k by 16 bytes, or by elements");

    // A lane asks for the words of a step's vectors here.
    template <class Staged, int bytes, int vectors>
    using Held = typename ChooseType<kStaged, typename Staged::Shared, HeldVectors<bytes, vectors>>::type;

    struct Anything {};
    using Access = typename ChooseType<kAnywhere, UnalignedChunk, Packet<kChunkBytes>>::type;
    using Inner = typename ChooseType<kAnywhere, InnerChunks, Anything>::type;  // what aligned accesses may touch

    static TILEWISE_DEVICE Inner inner_of(const char* begin, Index bytes) {
        if constexpr (kAnywhere) return InnerChunks::of(begin, bytes);
        return {};
    }
    // So many bytes of an access as lie inside, at most all; without any it is zero.
    static TILEWISE_DEVICE void load(Access& to, const char* from, int inside, const Inner& inner) {
        if constexpr (kAnywhere) {
            to.template load<T::bytes>(from, inside, inner);
        } else {
            to = zero_packet<kChunkBytes>();
            if (inside > 0) to = load_global<kChunkBytes>(from);
        }
    }
    // Towards the cache. At the ends of a matrix that begins anywhere it is left out.
    static TILEWISE_DEVICE void prefetch(const char* from, const Inner& inner) {
        if constexpr (kAnywhere) {
            const u64 at = reinterpret_cast<u64>(from) / kChunkBytes * kChunkBytes;
            if (!inner.hold(at)) return;
            from -= reinterpret_cast<u64>(from) - at;
        }
        prefetch_line(from);
    }
};

template <class T, int vectors, int warp_k, bool along_k>
struct StagedVectors {
    static constexpr int kAll = vectors * warp_k, kEach = (kAll + kArchLanes - 1) / kArchLanes;
    static constexpr int kLineBytes = warp_k * T::bytes + kChunkBytes, kBytes = vectors * kLineBytes;
    static_assert(warp_k * T::bytes % kChunkBytes == 0);

    // A lane's turns along one vector, or at one k, and the lines from there to the next ones.
    static constexpr int kLength = along_k ? warp_k : vectors, kTurns = kLength > kArchLanes ? kLength / kArchLanes : 1,
                         kLines = kLength > kArchLanes ? 1 : kArchLanes / kLength;

    Packet<T::bytes> element[kEach];

    static TILEWISE_DEVICE int number_of(int i) { return i * kArchLanes + lane_index(); }
    static TILEWISE_DEVICE int vector_of(int i) { return along_k ? number_of(i) / warp_k : number_of(i) % vectors; }
    static TILEWISE_DEVICE int k_of(int i) { return along_k ? number_of(i) % warp_k : number_of(i) / vectors; }
    static TILEWISE_DEVICE bool has(int i) { return kAll % kArchLanes == 0 || number_of(i) < kAll; }

    // From `from` on there are `count` vectors of `k_left` elements; the others are zero. Neighbours along k, or of all vectors, follow
    // each other, and `line_bytes` are from one vector, or k, to the next.
    TILEWISE_DEVICE void fetch(const char* from, int count, int k_left, Index line_bytes) {
        const char* at =
            from + k_of(0) * (along_k ? T::bytes : line_bytes) + vector_of(0) * (along_k ? line_bytes : T::bytes);
        TILEWISE_UNROLL
        for (int i = 0; i < kEach; ++i) {
            element[i] = zero_packet<T::bytes>();
            const bool inside = has(i) && vector_of(i) < count && k_of(i) < k_left;
            if (inside) element[i] = load_global<T::bytes>(at + i % kTurns * (kArchLanes * T::bytes));
            if (i % kTurns == kTurns - 1) at += kLines * line_bytes;
        }
    }

    // All lanes have read what was there before, and may read what is there now.
    TILEWISE_DEVICE void put(SharedAddress to) const {
        sync_warp();
        TILEWISE_UNROLL
        for (int i = 0; i < kEach; ++i) {
            if (has(i)) store_shared<T::bytes>(to + vector_of(i) * kLineBytes + k_of(i) * T::bytes, element[i]);
        }
        sync_warp();
    }

    // Those of a lane, from its first k on; a word is read where it is multiplied.
    struct Shared {
        SharedAddress at;
        TILEWISE_DEVICE u32 word(int v, int w) const { return load_shared<4>(at + v * kLineBytes + w * 4).words[0]; }
    };
};

}  // namespace tilewise::gpu
