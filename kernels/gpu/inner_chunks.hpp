// SPDX-License-Identifier: MIT
// Which aligned chunks of 16 bytes lie inside a tensor that begins and ends anywhere. Host-compilable: it is tested there.
#pragma once
#include "tile_layout.hpp"

namespace tilewise::gpu {

// The chunks of a matrix whose neighbours on both sides lie inside it, too: `first` is the lowest such place, and `reach` how
// far above it the highest is, below 0 for none.
struct InnerChunks {
    u64 first;
    Index reach;

    static TILEWISE_DEVICE InnerChunks of(const void* begin, Index bytes) {
        const u64 low = reinterpret_cast<u64>(begin), high = low + u64(bytes);
        const u64 first = (low + kChunkBytes - 1) / kChunkBytes * kChunkBytes;
        return {first, Index(high / kChunkBytes * kChunkBytes - first) - 2 * kChunkBytes};
    }
    // Whether two aligned chunks from `at` on may be read.
    TILEWISE_DEVICE bool hold(u64 at) const { return at >= first && Index(at - first) <= reach; }
};

}  // namespace tilewise::gpu
