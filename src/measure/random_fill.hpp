// SPDX-License-Identifier: MIT
// Random operands. The same seed gives the same bits on every machine, so a failure can be repeated from its report.
#pragma once

#include <cstdint>

#include "measure/guarded_buffer.hpp"

namespace tilewise {

// Mixes a seed and a counter into 64 random bits.
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t counter) {
    std::uint64_t x = seed + (counter + 1) * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}
// Uniform in [0, 1).
constexpr double random_unit(std::uint64_t seed, std::uint64_t counter) {
    return static_cast<double>(static_cast<std::int64_t>(random_bits(seed, counter) >> 11)) * 0x1p-53;
}

// The range values are drawn from. Whole numbers: int8 all of it but -128, which has no opposite; int32 small enough
// that a kernel may add it in fp32 without rounding.
struct Range {
    double low, high;
};
Range operand_range(DType type);
inline constexpr Range kScaleRange = {0.5, 2.0};

// Fills the rows, not what lies between them, uniformly and rounded to the buffer's type.
void fill_random(const GuardedBuffer& buffer, Range range, std::uint64_t seed);

}  // namespace tilewise
