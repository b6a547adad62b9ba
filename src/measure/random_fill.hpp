// SPDX-License-Identifier: MIT
// Random operands. The same seed gives the same bits on every machine, so a failure can be repeated from its report.
#pragma once

#include <cstdint>

#include "kernels/common/random.hpp"
#include "measure/guarded_buffer.hpp"

namespace tilewise {

// The range values are drawn from. Whole numbers: int8 all of it but -128, which has no opposite; int32 small enough
// that a kernel may add it in fp32 without rounding.
struct Range {
    double low, high;
};
Range operand_range(DType type);
inline constexpr Range kScaleRange = {0.5, 2.0};

// random_value of kernels/common/random.hpp is asked for this.
struct Draw {
    double low, width;
    bool whole;
};
Draw draw_of(DType type, Range range);

// Fills the rows, not what lies between them, uniformly and rounded to the buffer's type.
void fill_random(const GuardedBuffer& buffer, Range range, std::uint64_t seed);

}  // namespace tilewise
