// SPDX-License-Identifier: MIT
// How a tile of an operand lies in shared memory: as in global memory, line by line along its contiguous axis, without
// gaps, but the 16-byte chunks of a line are exchanged (XOR with bits of the line's number) so that the same chunk of
// eight neighbouring lines falls on eight different groups of banks. That is what loads of matrix units read at a time, from either
// side, and a row of neighbouring chunks of one line stays free of conflicts too. Where nothing else is read, the
// exchange is left out. Host-compilable: it is tested there.
#pragma once
#include "types.hpp"

namespace tilewise::gpu {

inline constexpr int kChunkBytes = 16, kBankChunks = 8;  // all banks together: 128 bytes

template <int line_count, int line_bytes, bool swizzled = true>
struct TileLayout {
    static constexpr int kChunks = line_bytes / kChunkBytes;
    static constexpr int kBytes = line_count * line_bytes;
    static_assert(line_bytes % kChunkBytes == 0 && (kChunks & (kChunks - 1)) == 0,
                  "a line is a power of two of 16-byte chunks");
    static constexpr int kSwizzled = kChunks < kBankChunks ? kChunks : kBankChunks;
    static constexpr int kLinesPerTurn = kBankChunks / kSwizzled;  // lines that fill all banks once

    static TILEWISE_DEVICE u32 offset(u32 line, u32 chunk) {
        const u32 swizzle = !swizzled ? 0 : (line / kLinesPerTurn) & (kSwizzled - 1);
        return line * line_bytes + (chunk ^ swizzle) * kChunkBytes;
    }
    // A byte of a line lies here.
    static TILEWISE_DEVICE u32 byte_offset(u32 line, u32 byte) {
        return offset(line, byte / kChunkBytes) + byte % kChunkBytes;
    }
};

}  // namespace tilewise::gpu
