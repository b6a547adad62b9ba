// SPDX-License-Identifier: MIT
// The reference computes what a problem's result should be, in double on the decoded inputs, with the error a kernel may make:
//   epilogue( alpha * scale_a * scale_b * A*B [+ beta*C] )
// as problem.hpp defines it. beta == 0 does not read C. For large problems only some rows need be computed.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "kernels/common/finish.hpp"
#include "measure/product.hpp"
#include "measure/tolerance.hpp"

namespace tilewise {

struct ReferenceOptions {
    float alpha = 1, beta = 0;
    Summation summation = {};  // of the kernel that is judged; only the error depends on it
};

// Says what follows the product, in the words of kernels/common/finish.hpp.
FinishSteps finish_steps(const Problem& problem, const ReferenceOptions& options);

// Some rows of one batch entry, and some columns of them. Values of row r begin at index r * cols.
struct ReferenceTile {
    std::int64_t batch = 0;
    std::span<const std::int64_t> rows;
    std::int64_t col_begin = 0, cols = 0;
    std::span<const Bounded> values;
};

// Visits every column of the rows given, in tiles; the visitor says whether to go on.
void visit_reference(const Tensors& tensors, std::span<const RowRef> rows, const ReferenceOptions& options,
                     const std::function<bool(const ReferenceTile&)>& visit);

// n values for each row given, in that order.
std::vector<Bounded> reference_rows(const Tensors& tensors, std::span<const RowRef> rows,
                                    const ReferenceOptions& options);

std::vector<RowRef> all_rows(const Problem& problem);

// batch x m x n values of the GEMM view (problem/facts.hpp).
std::vector<double> reference_result(const Tensors& tensors, const ReferenceOptions& options);

}  // namespace tilewise
