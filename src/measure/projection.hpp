// SPDX-License-Identifier: MIT
// A cheap look at every element of a large result. Columns are taken in groups of `width` and added up with random
// signs s: of a right result, sum_j s_j*C_ij equals A_i*(sum_j s_j*B_j), which takes 1/width of the work of the
// product. An error of one element survives in the sum whatever the signs; the permitted errors of the others, being
// unrelated to the signs, grow with sqrt(width) only. Rows that look wrong are to be computed in full; this accuses, it
// does not judge.
#pragma once

#include <cstdint>
#include <vector>

#include "measure/reference.hpp"

namespace tilewise {

// Whether the result is a linear function of the product: no activation, no multiplication with a D tensor, and an
// output type that random results do not saturate.
bool is_projectable(const Problem& problem);

// The group width for which the projection takes at most that many multiply-adds, a power of two.
std::int64_t projection_width(const Problem& problem, double multiply_adds);

// Rows with a group whose projection is off by more than errors within tolerance explain, or which hold a value that is
// not finite, or the largest there is. The signs come from the seed.
std::vector<RowRef> suspicious_rows(const Tensors& tensors, const ReferenceOptions& options, std::int64_t width,
                                    std::uint64_t seed);

// Rows with a value that is not finite or that nobody has written; what is left to look at when nothing is linear.
std::vector<RowRef> unfinished_rows(const Tensors& tensors);

}  // namespace tilewise
