// SPDX-License-Identifier: MIT
// The tasks of one launch of gpu/pad_rows.hpp. A task copies a tensor whose rows end anywhere to longer rows without gaps, with zeros
// behind each row, each block of rows and the last block; or it copies longer rows without gaps back to the tensor.
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

enum class RowAction : int { pad_chunks, pad_elements, crop };

// Row j of block i begins at i * block_pitch + j * row_pitch in the narrow tensor, which is the caller's, and at
// (i * wide_rows + j) * wide_row_bytes in the wide one. All counts are below 2^31.
struct RowTask {
    RowAddress narrow, wide;
    RowAction
        action;  // the wide one is written, by chunks where its rows end on 16 bytes; or the narrow one, whose rows have no gaps
    int element_bytes;  // that are moved at a time where these are not chunks: 1, 2 or 4
    int row_bytes, rows, blocks, row_pitch, block_pitch;
    int wide_row_bytes, wide_rows;
    int bytes;  // of the tensor that is written; 0: nothing to do
    // Of the tensor that is written: a row's chunks, or bytes where elements are moved; a block's rows.
    LaunchDivisor by_row, by_rows;
};

struct RowTasks {
    RowTask task[kMaxRowTasks];
    int count;
};

}  // namespace tilewise
