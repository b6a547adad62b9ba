// SPDX-License-Identifier: MIT
// Where operands lie that a GPU kernel packs into the workspace first, since tensor copies cannot read them as they are: lines
// begin on multiples of 16 bytes, one after the other, matrix after matrix; A behind the partial sums of split_k, B behind A.
// The host works out sizes and tensor maps with it, the packing kernel addresses.
#pragma once
#include "args.hpp"

namespace tilewise {

inline constexpr int kPackedBytes = 16;  // multiples of which lines, and everything in the workspace, begin on

constexpr Index whole_packs(Index bytes) { return (bytes + kPackedBytes - 1) / kPackedBytes * kPackedBytes; }

struct PackedMatrices {
    Index length, lines, matrices;  // elements of a line, lines of a matrix
    int element_bytes;

    constexpr Index line_bytes() const { return whole_packs(length * element_bytes); }
    constexpr Index bytes() const { return line_bytes() * lines * matrices; }
};

// The partial sums, which come first, take so many bytes.
constexpr Index partial_bytes(Index m, Index n, Index batch, int split_k) {
    constexpr Index kSumBytes = 4;
    return split_k > 1 ? whole_packs(m * n * batch * split_k * kSumBytes) : 0;
}

}  // namespace tilewise
