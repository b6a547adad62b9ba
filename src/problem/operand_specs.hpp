// SPDX-License-Identifier: MIT
// The operands a problem asks for, as a caller stores them: their names, element types, shapes and strides. What the C
// interface tells its clients, so that none of them works it out a second time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "problem/problem.hpp"

namespace tilewise {

// The most elements of an operand, and so the most for each of its sizes: far beyond any memory, and small enough that element
// counts in bytes, flops in double and tile counts stay exact.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 48;

struct OperandSpec {
    std::string name;  // "a", "b", "c", "bias", "d0" to "d3", "scale_a", "scale_b"
    DType dtype = DType::fp32;
    // Outermost first; strides in elements. GEMM: a batch comes before rows and columns, unless one matrix serves all of it.
    // Convolution, of x, w and y, whichever of them a, b and c are (problem/facts.hpp):
    //     channels last   x (n, *in, g, c/g)   w (g, k/g, *filter, c/g)   y (n, *out, g, k/g)
    //     channels first  x (n, g, c/g, *in)   w as above                 y (n, g, k/g, *out)
    std::vector<std::int64_t> shape, strides;
};

// In the order of the names above; only those that the problem has.
std::vector<OperandSpec> operand_specs(const Problem& problem);

Json operands_to_json(const std::vector<OperandSpec>& operands);  // [{name, dtype, shape, strides}]

}  // namespace tilewise
