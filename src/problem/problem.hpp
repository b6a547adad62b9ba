// SPDX-License-Identifier: MIT
// A problem says what to compute: a plain value with equality, a one-line text and a JSON form (problem_text.hpp). It names
// everything that can change which kernel may run or how fast: types, layouts, strides, alignment, fused
// operations, numeric class and limits. Values of alpha and beta are arguments; only "beta is zero" matters here.
//
// The result is   epilogue( scales * A*B [+ beta*C] ).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/rejected.hpp"
#include "problem/types.hpp"

namespace tilewise {

inline constexpr int kMaxSpatialDims = 3;

// One to three spatial extents, outermost first; rank 0 means "not given".
struct Extents {
    std::array<std::int64_t, kMaxSpatialDims> size{};
    int rank = 0;

    std::int64_t operator[](int i) const { return size[static_cast<std::size_t>(i)]; }
    std::int64_t& operator[](int i) { return size[static_cast<std::size_t>(i)]; }
    bool operator==(const Extents&) const = default;
};
Extents filled(int rank, std::int64_t value);

inline constexpr std::int64_t kPacked = -1;

struct GemmShape {
    std::int64_t m = 0, n = 0, k = 0;
    std::int64_t batch = 1;
    // Elements between consecutive rows of A, B, C as stored, and between consecutive matrices of a batch.
    // kPacked means without gaps; a batch stride of 0 reads one matrix for the whole batch.
    std::array<std::int64_t, 3> leading = {kPacked, kPacked, kPacked};
    std::array<std::int64_t, 3> batch_stride = {kPacked, kPacked, kPacked};

    bool operator==(const GemmShape&) const = default;
};

struct ConvShape {
    std::int64_t n = 0, g = 1, c = 0, k = 0;  // c and k are totals over the groups
    Extents in, filter, stride, dilation;
    Extents pad_before, pad_after;

    bool operator==(const ConvShape&) const = default;
};

inline constexpr std::int64_t kDefaultAlignBytes = 16;  // what malloc and every GPU allocator give at least
inline constexpr std::int64_t kMaxAlignBytes = 4096;
inline constexpr std::int64_t kNoWorkspaceLimit = -1;
inline constexpr std::size_t kMaxEpilogueOps = 8;
inline constexpr std::size_t kMaxDTensors = 4;

struct Problem {
    Op op = Op::gemm;
    GemmShape gemm;  // meaningful for gemm only, at its defaults otherwise
    ConvShape conv;  // meaningful for convolutions only, at its defaults otherwise
    DType dtype_a = DType::fp32;
    DType dtype_b = DType::fp32;
    DType dtype_out = DType::fp32;
    Layout layout = Layout::rcr;
    std::vector<EpilogueOp> epilogue;
    bool beta = false;      // whether C is read and added
    bool packed_b = false;  // B comes in the form its kernel packed ahead; weights do
    Scale scale = Scale::none;
    Math math = Math::strict;
    std::int64_t align_bytes = kDefaultAlignBytes;  // what every pointer is a multiple of
    bool deterministic = false;
    std::int64_t workspace_bytes = kNoWorkspaceLimit;

    bool operator==(const Problem&) const = default;
};

// The first rule that makes the problem impossible, with the numbers; nothing when it is well formed.
std::optional<Rejected> check_problem(const Problem& problem);

}  // namespace tilewise
