// SPDX-License-Identifier: MIT
// A problem implies these numbers: output sizes, the matrix product it amounts to, work and traffic. Selection, the
// roof in a benchmark and the cost models all read these numbers, so they are computed in one place.
#pragma once

#include <cstdint>

#include "problem/problem.hpp"

namespace tilewise {

std::int64_t output_extent(const ConvShape& conv, int dimension);
Extents output_size(const ConvShape& conv);
std::int64_t product(const Extents& extents);  // pixels of an image, taps of a filter

// The matrix product a problem amounts to: `batch` products (GEMM batch or convolution groups) of m x n x k.
//   conv_fwd         m = n*outputs   n = k/g        k = c/g*taps
//   conv_bwd_data    m = n*inputs    n = c/g        k = k/g*taps
//   conv_bwd_weight  m = k/g         n = c/g*taps   k = n*outputs
struct GemmView {
    std::int64_t m = 0, n = 0, k = 0, batch = 1;

    bool operator==(const GemmView&) const = default;
};
GemmView gemm_view(const Problem& problem);

// Elements of operand 0 (A), 1 (B) and 2 (C) of the product: fwd x, w, y; bwd data dy, w, dx; bwd weight dy, x, dw.
// A GEMM operand counts what is read or written, not the gaps of its strides.
std::array<std::int64_t, 3> operand_elements(const Problem& problem);

// Elements between consecutive rows of a GEMM operand, gaps resolved.
std::int64_t leading_stride(const Problem& problem, int operand);
// Elements between consecutive matrices of a GEMM operand, gaps resolved.
std::int64_t batch_stride(const Problem& problem, int operand);
// Whether the operand of a convolution is its weights (GKYXC): B of forward and backward data, C of backward weight.
bool is_weight(Op op, int operand);
// Whether it is x: A of forward, C of backward data, B of backward weight. What is neither is y.
bool is_input(Op op, int operand);
bool has_bias(const Problem& problem);
std::size_t d_count(const Problem& problem);  // D tensors of the epilogue
// Elements of a bias: one per column of C; of a convolution, per channel of the output over all groups.
std::int64_t bias_length(const Problem& problem);
// The length of the dimension in which an operand's elements are neighbours in memory: what vector loads divide. Of a
// channels-last activation it is the channels of `groups` groups, which lie side by side.
std::int64_t contiguous_length(const Problem& problem, int operand, std::int64_t groups = 1);

double flops(const Problem& problem);        // two per multiply-add; taps that fall into the padding are counted
double bytes_moved(const Problem& problem);  // every operand once
double arithmetic_intensity(const Problem& problem);

bool is_depthwise(const Problem& problem);  // one input channel per group, and more than one group
bool is_pointwise(const Problem& problem);  // every filter extent is 1

}  // namespace tilewise
