// SPDX-License-Identifier: MIT
// How the operands of a problem lie inside those of a larger, padded one: as rows of bytes in blocks, in the same nest on
// both sides, so that padding is one strided copy and cropping is the same copy backwards. The copies share one piece of
// workspace; where each begins in it is settled here. Pure: what moves the bytes is run/padded_launch.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "problem/problem.hpp"

namespace tilewise {

// Row j of block i begins i * block_pitch + j * row_pitch bytes after the start.
struct RowNest {
    std::int64_t blocks = 1, rows = 1, row_bytes = 0;
    std::int64_t row_pitch = 0, block_pitch = 0;

    bool operator==(const RowNest&) const = default;
};

enum class TensorRole : std::uint8_t { a, b, c, bias, scale_a, scale_b, d };

struct PaddedTensor {
    TensorRole role = TensorRole::a;
    std::size_t index = 0;  // of a D tensor
    RowNest given;          // as the caller has it
    RowNest padded;         // in the workspace, without gaps
    std::int64_t offset = 0;
};

inline constexpr std::size_t kMaxPaddedTensors = 6 + kMaxDTensors;  // A, B, C, bias, two scales and D tensors
inline constexpr std::int64_t kPaddedAlignment = 256;               // of every copy: more than any access of any device

struct PaddedTensors {
    std::vector<PaddedTensor> tensors;  // those that are copied
    std::int64_t bytes = 0;             // of workspace, room for aligning its start included; 0 when nothing is copied
};

// `copied` says which of A, B and C are; D tensors go with C, and vectors go where their length changes. Whatever is not
// copied has the same shape in both problems.
PaddedTensors padded_tensors(const Problem& given, const Problem& padded, const std::array<bool, 3>& copied);

}  // namespace tilewise
