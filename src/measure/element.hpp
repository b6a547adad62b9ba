// SPDX-License-Identifier: MIT
// The element types on the host: bits to double, exactly, and double to bits with one rounding to nearest even.
//   fp16, bf16, fp32  IEEE; too large becomes infinity
//   fp8 (e4m3fn)      largest 448, no infinity, NaN is 0x7f and 0xff
//   bf8 (e5m2)        largest 57344, infinity and NaN as in IEEE
//   int8, int32       rounded to the nearest even whole number; NaN becomes 0
// The 8-bit floats and the integers saturate: a finite value too large becomes the largest. Infinity stays infinity
// where there is one, and becomes NaN in fp8. Written from the formats alone and shared with no kernel.
#pragma once

#include <cstdint>

#include "problem/types.hpp"

namespace tilewise {

double decode(DType type, std::uint32_t bits);  // the low bytes_of(type) bytes count
std::uint32_t encode(DType type, double value);

// The value after a trip through the type.
inline double rounded_to(DType type, double value) { return decode(type, encode(type, value)); }

// The largest relative error of rounding to a float type, half the distance of neighbours at 1; 0 for integers.
double unit_roundoff(DType type);
// The largest absolute error of rounding near zero: half the smallest subnormal, or half of 1.
double least_roundoff(DType type);
double largest_finite(DType type);

// The bits that mark an output element nobody has written: a NaN, or 0x80 in every byte.
std::uint32_t poison_bits(DType type);

// Many at once. Strides are in elements; memory need not be aligned.
void decode(DType type, const void* from, std::int64_t stride, std::int64_t count, double* to);
void encode(DType type, const double* from, std::int64_t count, void* to);

}  // namespace tilewise
