// SPDX-License-Identifier: MIT
// The tasks of one launch of gpu/pad_rows.hpp. A task copies a tensor whose rows end anywhere to rows that end on 16 bytes, with zeros
// behind each row, each block of rows and the last block; or it copies such rows back to the tensor.
#pragma once
#include "launch_divisor.hpp"

namespace tilewise {

inline constexpr int kRowChunkBytes = 16;  // that a thread writes at a time
inline constexpr int kMaxRowTasks = 4;     // of one launch
inline constexpr int kRowThreads = 256;    // of a block

// An address in two halves, since words of 4 bytes are all that the argument block promises.
struct RowAddress {
    unsigned low, high;
};

// Row j of block i begins at i * block_pitch + j * row_pitch in the narrow tensor, which is the caller's, and at
// (i * wide_rows + j) * wide_row_bytes in the wide one. All counts are below 2^31.
struct RowTask {
    RowAddress narrow, wide;
    int crops;  // 0: the wide one is written; else the narrow one, whose rows have no gaps, by so many bytes (1, 2 or 4)
    int row_bytes, rows, blocks, row_pitch, block_pitch;
    int wide_row_bytes, wide_rows;
    int bytes;  // of the tensor that is written; 0: nothing to do
    LaunchDivisor by_row,
        by_rows;  // padding: chunks of a wide row, wide rows of a block; cropping: bytes of a row, rows of a block
};

struct RowTasks {
    RowTask task[kMaxRowTasks];
    int count;
};

}  // namespace tilewise
