// SPDX-License-Identifier: MIT
// How a tile of 16-bit elements that lies across k lies in shared memory, where reads turn it around (load_turned): lines are steps of
// k, as they are in global memory, and 32 bytes of a line, 16 elements of the extent, are a pair of chunks. Pairs of a line are
// exchanged by bits of its number, so that 32 lanes that read together find all banks of 256 bytes: for a square of 32 they read two
// pairs of four lines, for a square of 16 one pair of four lines and of the four that are eight lines further on. A tile of 16 elements has
// one pair a line and nothing to exchange: there two lanes take turns. Host-compilable: it is tested there.
#pragma once
#include "../gpu/tile_layout.hpp"

namespace tilewise::hip {

using gpu::u32;

template <int lines, int line_bytes>
struct CrossedLayout {
    static constexpr int kPairBytes = 2 * gpu::kChunkBytes, kBankPairs = 8, kBytes = lines * line_bytes;
    static constexpr int kPairs = line_bytes / kPairBytes, kExchanged = kPairs < kBankPairs ? kPairs : kBankPairs;
    static constexpr int kLinesPerTurn = kBankPairs / kExchanged;  // lines that fill all banks once
    static_assert(line_bytes % kPairBytes == 0 && (kPairs & (kPairs - 1)) == 0, "a line is a power of two of pairs");

    static TILEWISE_DEVICE u32 byte_offset(u32 line, u32 byte) {
        const u32 exchange = (2 * (line % 4 / kLinesPerTurn) ^ (line / 8 & 1)) & (kExchanged - 1);
        return line * line_bytes + (byte ^ exchange * kPairBytes);
    }
    // A lane asks here, in the first square of `side` from `first` on, so that it gets row (column) number lane % side: the first half of
    // the chunk along k number lane / side.
    template <int side>
    static TILEWISE_DEVICE u32 lane_place(int first, int lane) {
        const u32 line = u32(lane / side * 8 + lane % 16 / 4);
        const u32 element = u32(first + lane % side / 16 * 16 + lane % 4 * 4);
        return byte_offset(line, element * 2);
    }
    // The same of another square and another line, a multiple of 16 or that and four: bits of squares and lanes do not meet, because
    // the wave's first element is a multiple of all its squares.
    static TILEWISE_DEVICE u32 at(u32 place, int element, int line) {
        return (place ^ u32(element * 2)) + u32(line * line_bytes);
    }
};

}  // namespace tilewise::hip
