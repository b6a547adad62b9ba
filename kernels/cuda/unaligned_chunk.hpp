// SPDX-License-Identifier: MIT
// 16 bytes of global memory from anywhere: two aligned accesses shifted together, where element by element it would be eight or
// sixteen. So bytes beside a matrix are read where an aligned chunk holds one of its own as well, which no border of memory
// ever parts; they never count.
#pragma once
#include "primitives.hpp"
#include "tile_layout.hpp"

namespace tilewise::cuda {

// Two neighbouring chunks of memory on their way, of which 16 bytes count, beginning `skip` bytes into the first; of those
// the first `valid` lie inside the matrix. A chunk without any such byte has not been read and is zero.
struct UnalignedChunk {
    Packet<kChunkBytes> first, second;
    int skip, valid;

    TILEWISE_DEVICE void load(const char* from, int bytes_inside) {
        skip = int(reinterpret_cast<u64>(from) % kChunkBytes), valid = bytes_inside;
        first = second = zero_packet<kChunkBytes>();
        if (valid > 0) first = load_global<kChunkBytes>(from - skip);
        if (skip + valid > kChunkBytes) second = load_global<kChunkBytes>(from - skip + kChunkBytes);
    }

    // The same where all 16 bytes lie inside.
    TILEWISE_DEVICE void load_whole(const char* from) {
        skip = int(reinterpret_cast<u64>(from) % kChunkBytes), valid = kChunkBytes;
        first = load_global<kChunkBytes>(from - skip);
        second = zero_packet<kChunkBytes>();
        if (skip > 0) second = load_global<kChunkBytes>(from - skip + kChunkBytes);
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
        for (int i = 0; i < 2 * words - 2; ++i) word[i] = (skip & 8) != 0 ? word[i + 2] : word[i];
        TILEWISE_UNROLL
        for (int i = 0; i <= words; ++i) word[i] = (skip & 4) != 0 ? word[i + 1] : word[i];
        Packet<kChunkBytes> chunk;
        TILEWISE_UNROLL
        for (int i = 0; i < words; ++i) {
            chunk.words[i] = u32((u64(word[i + 1]) << word_bits | word[i]) >> (skip % 4 * 8));
        }
        return chunk;
    }
};

}  // namespace tilewise::cuda
