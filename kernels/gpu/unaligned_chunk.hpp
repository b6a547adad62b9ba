// SPDX-License-Identifier: MIT
// 16 bytes of global memory from anywhere: two aligned accesses shifted together, where element by element it would be eight or
// sixteen. At either end of a matrix an aligned chunk may hold bytes that are not the caller's; there it is element by element.
#pragma once
#include "inner_chunks.hpp"
#include "packet.hpp"

namespace tilewise::gpu {

// By values: of a choice between two places clang makes an address, for which the words would have to be in memory.
TILEWISE_DEVICE u32 choose(bool first, u32 x, u32 y) { return first ? x : y; }

// Two neighbouring chunks of memory on their way, of which 16 bytes count, beginning `skip` bytes into the first; of those
// the first `valid` lie inside the matrix. A chunk without any such byte has not been read and is zero.
struct UnalignedChunk {
    Packet<kChunkBytes> first, second;
    int skip, valid;

    template <int element_bytes>
    TILEWISE_DEVICE void load(const char* from, int bytes_inside, const InnerChunks& inner) {
        skip = int(reinterpret_cast<u64>(from) % kChunkBytes), valid = bytes_inside;
        first = second = zero_packet<kChunkBytes>();
        if (!inner.hold(reinterpret_cast<u64>(from) - u64(skip))) return load_elements<element_bytes>(from);
        if (valid > 0) first = load_global<kChunkBytes>(from - skip);
        if (skip + valid > kChunkBytes) second = load_global<kChunkBytes>(from - skip + kChunkBytes);
    }

    // The same where all 16 bytes lie inside.
    template <int element_bytes>
    TILEWISE_DEVICE void load_whole(const char* from, const InnerChunks& inner) {
        skip = int(reinterpret_cast<u64>(from) % kChunkBytes), valid = kChunkBytes;
        first = second = zero_packet<kChunkBytes>();
        if (!inner.hold(reinterpret_cast<u64>(from) - u64(skip))) return load_elements<element_bytes>(from);
        first = load_global<kChunkBytes>(from - skip);
        if (skip > 0) second = load_global<kChunkBytes>(from - skip + kChunkBytes);
    }

    // The valid bytes alone, the last element first: each moves those behind it up.
    template <int element_bytes>
    TILEWISE_DEVICE void load_elements(const char* from) {
        constexpr int word_bits = 32, element_bits = 8 * element_bytes;
        u32(&words)[kChunkBytes / 4] = first.words;
        TILEWISE_ROLLED
        for (int at = valid - element_bytes; at >= 0; at -= element_bytes) {
            TILEWISE_UNROLL
            for (int i = kChunkBytes / 4 - 1; i > 0; --i) {
                words[i] = words[i] << element_bits | words[i - 1] >> (word_bits - element_bits);
            }
            words[0] = words[0] << element_bits | load_global<element_bytes>(from + at).value;
        }
        skip = 0;
    }

    TILEWISE_DEVICE Packet<kChunkBytes> joined() const {
        Packet<kChunkBytes> chunk = joined_whole();
        if (valid < kChunkBytes) {
            TILEWISE_UNROLL
            for (int i = 0; i < kChunkBytes / 4; ++i) {
                const int inside = valid - 4 * i;  // bytes of this word
                chunk.words[i] &= inside >= 4 ? ~0u : inside <= 0 ? 0u : (1u << (8 * inside)) - 1;
            }
        }
        return chunk;
    }
    TILEWISE_DEVICE Packet<kChunkBytes> joined_whole() const {
        constexpr int words = kChunkBytes / 4, word_bits = 32;
        u32 word[2 * words];
        TILEWISE_UNROLL
        for (int i = 0; i < words; ++i) word[i] = first.words[i], word[words + i] = second.words[i];
        TILEWISE_UNROLL
        for (int i = 0; i < 2 * words - 2; ++i) word[i] = choose((skip & 8) != 0, word[i + 2], word[i]);
        TILEWISE_UNROLL
        for (int i = 0; i <= words; ++i) word[i] = choose((skip & 4) != 0, word[i + 1], word[i]);
        Packet<kChunkBytes> chunk;
        TILEWISE_UNROLL
        for (int i = 0; i < words; ++i) {
            chunk.words[i] = u32((u64(word[i + 1]) << word_bits | word[i]) >> (skip % 4 * 8));
        }
        return chunk;
    }
};

}  // namespace tilewise::gpu
