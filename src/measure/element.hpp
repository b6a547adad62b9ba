// SPDX-License-Identifier: MIT
// The element types for the host's words: kernels/common/element.hpp has the formats and what they mean, and this adds
// DType and conversions of many elements at a time.
#pragma once

#include <cstdint>

#include "kernels/common/element.hpp"
#include "problem/kernel_words.hpp"

namespace tilewise {

constexpr double decode(DType type, std::uint32_t bits) { return decode(kernel_dtype(type), bits); }
constexpr std::uint32_t encode(DType type, double value) { return encode(kernel_dtype(type), value); }
constexpr double rounded_to(DType type, double value) { return rounded_to(kernel_dtype(type), value); }
constexpr double unit_roundoff(DType type) { return unit_roundoff(kernel_dtype(type)); }
constexpr double least_roundoff(DType type) { return least_roundoff(kernel_dtype(type)); }
constexpr double largest_finite(DType type) { return largest_finite(kernel_dtype(type)); }
constexpr std::uint32_t poison_bits(DType type) { return poison_bits(kernel_dtype(type)); }

// Many at once. Strides are in elements; memory need not be aligned.
void decode(DType type, const void* from, std::int64_t stride, std::int64_t count, double* to);
void encode(DType type, const double* from, std::int64_t count, void* to);

}  // namespace tilewise
