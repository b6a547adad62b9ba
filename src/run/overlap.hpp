// SPDX-License-Identifier: MIT
// Whether what a launch writes, its output and its workspace, shares memory with its other operands: then its results would
// depend on what comes first. What does not depend on the pointers is worked out when an executable is prepared, so that a
// launch only compares addresses. Operands that are interleaved without a byte in common, such as columns of one array, do
// not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "family/padded_tensors.hpp"
#include "problem/problem.hpp"

namespace tilewise {

struct Operands;

// Where the bytes of an operand lie, from its pointer on.
struct Footprint {
    RowNest nest;
    std::int64_t bytes = 0;  // from the first byte to the end of the last

    static Footprint of(const RowNest& nest);
    static Footprint without_gaps(std::int64_t bytes) { return of({1, 1, bytes, bytes, bytes}); }
};

// Whether the two have a byte in common, where `other` begins `distance` bytes after `written` (before it, if negative). Rows
// and blocks of `written` do not overlap each other. Exact. Takes a few nanoseconds, unless the operands are interleaved with
// pitches that have little in common: then a step for each row of `other`.
bool share_a_byte(const Footprint& written, const Footprint& other, std::int64_t distance);

class OverlapCheck {
public:
    OverlapCheck() = default;
    OverlapCheck(const Problem& problem, std::int64_t workspace_bytes, std::int64_t packed_b_bytes);

    // Nothing that is written may share a byte with anything else. Only a D tensor may be the output itself: every kernel
    // reads an element of D where it reads that of C for beta, right before it writes it.
    Status check_launch(const Operands& operands) const;
    Status check_packing(const void* b, const void* packed) const;

private:
    struct Operand {
        std::size_t slot;  // in the order of kOperandNames
        Footprint footprint;
    };

    Footprint output_, workspace_, b_, packed_b_;
    std::vector<Operand> others_;  // all but the output
};

}  // namespace tilewise
