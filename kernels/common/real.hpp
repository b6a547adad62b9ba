// SPDX-License-Identifier: MIT
// Arithmetic in double that a host and a GPU both have, each in its own words. What checks results is written with these
// once and compiled for both (element.hpp, tolerance.hpp, finish.hpp, random.hpp); kernels under test use none of it.
// Needs no system header.
#pragma once

namespace tilewise {

inline constexpr double kInfinity = __builtin_bit_cast(double, 0x7ff0000000000000ull);
inline constexpr double kNotANumber = __builtin_bit_cast(double, 0x7ff8000000000000ull);
inline constexpr double kRootTwo = 1.41421356237309504880;
inline constexpr double kPi = 3.14159265358979323846;

constexpr bool is_nan(double x) { return x != x; }
constexpr bool is_negative(double x) { return __builtin_bit_cast(unsigned long long, x) >> 63 != 0; }
constexpr double magnitude_of(double x) {
    return __builtin_bit_cast(double, __builtin_bit_cast(unsigned long long, x) & 0x7fffffffffffffffull);
}
constexpr bool is_finite(double x) { return magnitude_of(x) < kInfinity; }
constexpr bool is_infinite(double x) { return magnitude_of(x) == kInfinity; }
constexpr double lesser(double x, double y) { return y < x ? y : x; }
constexpr double greater(double x, double y) { return x < y ? y : x; }
// 2^exponent, a normal number.
constexpr double power_of_two(int exponent) {
    return __builtin_bit_cast(double, static_cast<unsigned long long>(exponent + 1023) << 52);
}

#if defined(__CUDACC__)
inline double floor_of(double x) { return floor(x); }
inline double root_of(double x) { return sqrt(x); }
inline double exp_of(double x) { return exp(x); }
inline double tanh_of(double x) { return tanh(x); }
inline double erfc_of(double x) { return erfc(x); }
// Rounded by itself, also where a sum follows: the host's compiler does not fuse the two.
inline double rounded_product(double x, double y) { return __dmul_rn(x, y); }
#else
inline double floor_of(double x) { return __builtin_floor(x); }
inline double root_of(double x) { return __builtin_sqrt(x); }
inline double exp_of(double x) { return __builtin_exp(x); }
inline double tanh_of(double x) { return __builtin_tanh(x); }
inline double erfc_of(double x) { return __builtin_erfc(x); }
inline double rounded_product(double x, double y) { return x * y; }
#endif

}  // namespace tilewise
