// SPDX-License-Identifier: MIT
// The region of shared memory through which a wave of 64 lanes takes its sums out (../gpu/drain.hpp). Lanes write four sums of a row, eight
// rows at a time, and read runs of a row: chunks are exchanged so that both fall on different banks, in the groups of lanes in which the
// hardware serves 16-byte accesses. Host-compilable: it is tested there.
#pragma once
#include "../gpu/tile_layout.hpp"

namespace tilewise::hip {

template <int rows, int cols>
struct WaveRegion {
    static constexpr int kFloat = 4, kRowBytes = cols * kFloat, kBytes = rows * kRowBytes;
    static constexpr int kChunks = kRowBytes / gpu::kChunkBytes;
    static_assert(kRowBytes % gpu::kChunkBytes == 0 && (kChunks & (kChunks - 1)) == 0);
    static constexpr int kSwizzled = kChunks < gpu::kBankChunks ? kChunks : gpu::kBankChunks;
    static constexpr int kRowsPerTurn = gpu::kBankChunks / kSwizzled;

    static TILEWISE_DEVICE gpu::u32 at(gpu::u32 row, gpu::u32 col) {
        // Rows of 64 columns are read two at a time, every second one: the lowest bit tells these apart as well.
        const gpu::u32 number = kRowsPerTurn == 1 ? row ^ (row >> 1 & 1) : row / kRowsPerTurn;
        return row * kRowBytes + ((col / 4) ^ (number & (kSwizzled - 1))) * gpu::kChunkBytes + col % 4 * kFloat;
    }
};

}  // namespace tilewise::hip
