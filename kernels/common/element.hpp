// SPDX-License-Identifier: MIT
// The element types, bit by bit: to double exactly, and from double with one rounding to nearest even.
//   fp16, bf16, fp32  IEEE; too large becomes infinity
//   fp8 (e4m3fn)      largest 448, no infinity, NaN is 0x7f and 0xff
//   bf8 (e5m2)        largest 57344, infinity and NaN as in IEEE
//   int8, int32       rounded to the nearest even whole number; NaN becomes 0
// The 8-bit floats and the integers saturate: a finite value too large becomes the largest. Infinity stays infinity
// where there is one, and becomes NaN in fp8. Written from the formats alone, for checking results on the host and on
// GPUs; no kernel that is checked uses it.
#pragma once
#include "real.hpp"

namespace tilewise {

enum class KernelDType : int { fp32, fp16, bf16, fp8, bf8, int8, int32 };

constexpr int element_bytes(KernelDType type) {
    switch (type) {
        case KernelDType::fp32:
        case KernelDType::int32: return 4;
        case KernelDType::fp16:
        case KernelDType::bf16: return 2;
        default: return 1;
    }
}
constexpr bool is_8bit_float(KernelDType type) { return type == KernelDType::fp8 || type == KernelDType::bf8; }
constexpr bool is_integer(KernelDType type) { return type == KernelDType::int8 || type == KernelDType::int32; }

// A small binary float: sign, exponent, mantissa, with subnormals.
struct FloatFormat {
    int mantissa;
    int min_exponent;     // of the smallest normal number
    unsigned max_finite;  // bits of the largest number, without sign
    unsigned infinity;    // bits of what an infinity becomes
    unsigned overflow;    // bits of what a finite value too large becomes
    unsigned nan;
    int sign_shift;
};
constexpr FloatFormat format_of(KernelDType type) {  // of the floats below 32 bits
    switch (type) {
        case KernelDType::fp16: return {10, -14, 0x7bff, 0x7c00, 0x7c00, 0x7e00, 15};
        case KernelDType::bf16: return {7, -126, 0x7f7f, 0x7f80, 0x7f80, 0x7fc0, 15};
        case KernelDType::fp8: return {3, -6, 0x7e, 0x7f, 0x7e, 0x7f, 7};
        default: return {2, -14, 0x7b, 0x7c, 0x7b, 0x7e, 7};
    }
}

constexpr double decode_format(const FloatFormat& f, unsigned bits) {
    const double sign = (bits >> f.sign_shift & 1) != 0 ? -1 : 1;
    const unsigned magnitude = bits & ((1u << f.sign_shift) - 1);
    if (magnitude > f.max_finite) {
        return magnitude == f.infinity && f.infinity != f.nan ? sign * kInfinity : kNotANumber;
    }
    const auto exponent = static_cast<int>(magnitude >> f.mantissa);
    const unsigned fraction = magnitude & ((1u << f.mantissa) - 1);
    const unsigned whole = exponent == 0 ? fraction : fraction | 1u << f.mantissa;
    return sign * whole * power_of_two((exponent == 0 ? 0 : exponent - 1) + f.min_exponent - f.mantissa);
}

constexpr unsigned encode_format(const FloatFormat& f, double value) {
    if (is_nan(value)) return f.nan;
    const unsigned sign = (is_negative(value) ? 1u : 0u) << f.sign_shift;
    const double magnitude = magnitude_of(value);
    if (is_infinite(magnitude)) return sign | f.infinity;
    const int own_exponent = static_cast<int>(__builtin_bit_cast(unsigned long long, magnitude) >> 52) - 1023;
    const int exponent = own_exponent < f.min_exponent ? f.min_exponent : own_exponent;
    if (exponent > 200) return sign | f.overflow;  // beyond every format; the scale below stays a normal double
    // In units of the last place the value is below 2^(mantissa+1); adding and taking away 2^52 rounds it, ties to
    // even.
    const double rounder = power_of_two(52);
    const double places = magnitude * power_of_two(f.mantissa - exponent);
    const auto whole = static_cast<unsigned>((places + rounder) - rounder);
    // The implicit bit of a normal number adds one to the exponent field, and so does a carry out of the mantissa.
    const unsigned bits = (static_cast<unsigned>(exponent - f.min_exponent) << f.mantissa) + whole;
    return sign | (bits > f.max_finite ? f.overflow : bits);
}

// The nearest even whole number of [low, high].
constexpr int nearest_whole(double value, double low, double high) {
    if (is_nan(value)) return 0;
    const double rounder = 1.5 * power_of_two(52);
    const double kept = value < low ? low : value > high ? high : value;
    return static_cast<int>((kept + rounder) - rounder);
}

constexpr double decode(KernelDType type, unsigned bits) {  // the low element_bytes(type) bytes count
    switch (type) {
        case KernelDType::fp32: return static_cast<double>(__builtin_bit_cast(float, bits));
        case KernelDType::bf16: return static_cast<double>(__builtin_bit_cast(float, bits << 16));
        case KernelDType::int8: return static_cast<signed char>(bits);
        case KernelDType::int32: return static_cast<int>(bits);
        default: return decode_format(format_of(type), bits);
    }
}

constexpr unsigned encode(KernelDType type, double value) {
    switch (type) {
        case KernelDType::fp32:
            // Converting what rounds beyond the largest float is undefined in C++; half a place above it is the border.
            if (magnitude_of(value) >= 0x1.ffffffp127) value = is_negative(value) ? -kInfinity : kInfinity;
            return __builtin_bit_cast(unsigned, static_cast<float>(value));
        case KernelDType::int8: return static_cast<unsigned char>(nearest_whole(value, -128, 127));
        case KernelDType::int32: return static_cast<unsigned>(nearest_whole(value, -2147483648.0, 2147483647.0));
        default: return encode_format(format_of(type), value);
    }
}

// The value after a trip through the type.
constexpr double rounded_to(KernelDType type, double value) { return decode(type, encode(type, value)); }

// The largest relative error of rounding to a float type, half the distance of neighbours at 1; 0 for integers.
constexpr double unit_roundoff(KernelDType type) {
    if (type == KernelDType::fp32) return 0x1p-24;
    return is_integer(type) ? 0 : power_of_two(-format_of(type).mantissa - 1);
}
// The largest absolute error of rounding near zero: half the smallest subnormal, or half of 1.
constexpr double least_roundoff(KernelDType type) {
    if (type == KernelDType::fp32) return 0x1p-150;
    return is_integer(type) ? 0.5 : power_of_two(format_of(type).min_exponent - format_of(type).mantissa - 1);
}
constexpr double largest_finite(KernelDType type) {
    switch (type) {
        case KernelDType::fp32: return 0x1.fffffep127;
        case KernelDType::int8: return 127;
        case KernelDType::int32: return 2147483647.0;
        default: return decode(type, format_of(type).max_finite);
    }
}

// The bits that mark an output element nobody has written: a NaN, or 0x80 in every byte.
constexpr unsigned poison_bits(KernelDType type) {
    switch (type) {
        case KernelDType::fp32: return 0x7fc0dead;
        case KernelDType::fp16: return 0x7e5a;
        case KernelDType::bf16: return 0x7fda;
        case KernelDType::fp8: return 0x7f;
        case KernelDType::bf8: return 0x7e;
        case KernelDType::int8: return 0x80;
        case KernelDType::int32: return 0x80808080;
    }
    return 0;
}

}  // namespace tilewise
