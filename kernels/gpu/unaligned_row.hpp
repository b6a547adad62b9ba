// SPDX-License-Identifier: MIT
// A row of results from shared memory to global memory where it begins anywhere: aligned accesses of 16 bytes, each shifted together from
// two chunks of shared memory, and single elements at both ends of the row. Loads and stores are apart, so that a thread has several rows
// on their way at once.
#pragma once
#include "unaligned_chunk.hpp"

namespace tilewise::gpu {

// A lane's part of a row of `row_bytes`, of which the first `count` elements leave. As many lanes as the row has chunks share it, each
// with its own number; chunk_at(i) is where chunk i of the row lies.
template <class T, int row_bytes>
struct UnalignedRow {
    static constexpr int kChunks = row_bytes / kChunkBytes, kElements = kChunkBytes / T::bytes;
    static constexpr int kColumns = kChunks * kElements;
    static constexpr int kEdges = (kElements + kChunks - 1) / kChunks;  // single elements of a lane
    static_assert(T::bytes == 2 || T::bytes == 4);

    typename T::Storage* to;
    int count, lane;
    int ahead;  // elements before the first boundary in memory
    UnalignedChunk chunk;
    Packet<T::bytes> edge[kEdges];

    // The elements before the first boundary and behind the last are a chunk together.
    TILEWISE_DEVICE int edge_at(int i) const {
        const int at = i * kChunks + lane;
        return at < ahead ? at : kColumns - kElements + at;
    }
    template <class ChunkAt>
    static TILEWISE_DEVICE Packet<T::bytes> element(int at, ChunkAt&& chunk_at) {
        return load_shared<T::bytes>(chunk_at(at / kElements) + at % kElements * T::bytes);
    }

    template <class ChunkAt>
    TILEWISE_DEVICE void load(typename T::Storage* row, int elements, int own_lane, ChunkAt&& chunk_at) {
        to = row, count = elements, lane = own_lane;
        ahead = int((kChunkBytes - reinterpret_cast<u64>(to) % kChunkBytes) % kChunkBytes) / T::bytes;
        chunk.skip = ahead * T::bytes, chunk.valid = kChunkBytes;
        chunk.first = load_shared<kChunkBytes>(chunk_at(lane));
        chunk.second = load_shared<kChunkBytes>(chunk_at(lane + 1 < kChunks ? lane + 1 : lane));
        TILEWISE_UNROLL
        for (int i = 0; i < kEdges; ++i) {
            if (i * kChunks + lane < kElements) edge[i] = element(edge_at(i), chunk_at);
        }
    }

    template <class ChunkAt>
    TILEWISE_DEVICE void store(ChunkAt&& chunk_at) const {
        const int first = ahead + lane * kElements, end = count < kColumns ? count : kColumns;
        if (first + kElements <= end) {
            store_global<kChunkBytes>(to + first, chunk.joined_whole());
        } else if (first + kElements <= kColumns) {  // the row ends within this chunk, or before it
            for (int at = first; at < end; ++at) store_global<T::bytes>(to + at, element(at, chunk_at));
        }
        TILEWISE_UNROLL
        for (int i = 0; i < kEdges; ++i) {
            const bool exists = ahead > 0 && i * kChunks + lane < kElements && edge_at(i) < end;
            if (exists) store_global<T::bytes>(to + edge_at(i), edge[i]);
        }
    }
};

}  // namespace tilewise::gpu
