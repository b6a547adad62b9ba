// SPDX-License-Identifier: MIT
// A plan describes the random operands of a problem: which there are, how each lies in memory and what is drawn for it. The
// host's tensors and those made on a device are the same, bit for bit, for the same seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/random_fill.hpp"
#include "problem/problem.hpp"

namespace tilewise {

// How operand 0 (A), 1 (B) or 2 (C) lies in memory. Those of a convolution have no gaps: one long row.
StoredRows stored_rows(const Problem& problem, int operand);

enum class OperandRole : std::uint8_t { a, b, original_c, bias, scale_a, scale_b, d };

struct PlannedInput {
    OperandRole role = OperandRole::a;
    std::string name;
    DType type = DType::fp32;
    StoredRows shape;
    Range range{};
    std::uint64_t seed = 0;  // of its own, whatever the sizes of the others
};

// Only those that the problem has, in the order of the roles; D tensors in theirs. With beta, what C holds before a run
// is an input of its own, since C is overwritten.
std::vector<PlannedInput> planned_inputs(const Problem& problem, std::uint64_t seed);

}  // namespace tilewise
