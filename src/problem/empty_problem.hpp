// SPDX-License-Identifier: MIT
// Problems with an empty dimension. Where the result has no elements there is nothing to do; where only the sums have no terms, the
// result is what the epilogue makes of zeros. Neither fits a kernel: one is chosen for a stand-in.
#pragma once

#include "problem/facts.hpp"
#include "problem/problem.hpp"

namespace tilewise {

bool has_empty_result(const Problem& problem);  // m, n or batch is 0, or there are no images
bool has_empty_sums(const Problem& problem);  // k is 0, or a gradient of weights has no images; the result is not empty
bool is_empty(const Problem& problem);        // either
bool is_empty(const GemmView& view);          // the same of a problem's view

// The same with a small size for each that is 0, and A and B plain, without gaps, and one for the whole batch. A result that is not
// empty stays as it is.
Problem stand_in(const Problem& problem);

}  // namespace tilewise
