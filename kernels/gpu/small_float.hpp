// SPDX-License-Identifier: MIT
// Floats of 16 and 8 bits as bits: how each kind is made of them, and the way to fp32 and back by integer arithmetic. fp8 is e4m3fn (no
// infinity), bf8 is e5m2; both saturate at their largest finite value when written.
#pragma once
#include "language.hpp"

namespace tilewise::gpu {

TILEWISE_DEVICE u32 bits_of(float x) { return __builtin_bit_cast(u32, x); }
TILEWISE_DEVICE float float_of(u32 bits) { return __builtin_bit_cast(float, bits); }

inline constexpr u32 kFloatMantissa = 23, kFloatBias = 127;
inline constexpr u32 kFloatMagnitude = 0x7fffffffu, kFloatInfinity = 0x7f800000u;
inline constexpr u16 kGpuNan16 = 0x7fff;  // what a GPU makes of every NaN, in fp16 and in bf16

// A small IEEE-like float of a Format with Format::{exponent_bits, mantissa_bits, largest, nan, has_infinity, saturates}.
template <class Format>
TILEWISE_DEVICE float decode_small(u32 x) {
    constexpr int bits = Format::exponent_bits + Format::mantissa_bits, shift = kFloatMantissa - Format::mantissa_bits;
    constexpr u32 rebias = (kFloatBias - ((1u << (Format::exponent_bits - 1)) - 1)) << kFloatMantissa;
    constexpr u32 one_up = rebias + (1u << kFloatMantissa);  // the exponent of denormals is that of the first normals
    constexpr u32 first_special =
        Format::has_infinity ? ((1u << Format::exponent_bits) - 1) << Format::mantissa_bits : Format::nan;
    const u32 sign = (x >> bits) << 31, magnitude = x & ((1u << bits) - 1), wide = magnitude << shift;
    u32 value = wide + rebias;
    if (magnitude < (1u << Format::mantissa_bits)) value = bits_of(float_of(wide + one_up) - float_of(one_up));
    if (magnitude >= first_special) value = wide | kFloatInfinity;
    return float_of(value | sign);
}
template <class Format>
TILEWISE_DEVICE u32 encode_small(float x) {
    constexpr int shift = kFloatMantissa - Format::mantissa_bits, bits = Format::exponent_bits + Format::mantissa_bits;
    constexpr u32 rebias = (kFloatBias - ((1u << (Format::exponent_bits - 1)) - 1)) << kFloatMantissa;
    constexpr u32 first_normal = rebias + (1u << kFloatMantissa);
    constexpr u32 overflow = Format::saturates ? Format::largest : Format::largest + 1;
    constexpr u32 unit = first_normal + (u32(shift) << kFloatMantissa);  // its last place: a denormal step
    const u32 raw = bits_of(x), sign = (raw >> 31) << bits, magnitude = raw & kFloatMagnitude;
    if (magnitude > kFloatInfinity) return Format::nan | sign;
    u32 value = (magnitude - rebias + ((magnitude >> shift) & 1u) + ((1u << (shift - 1)) - 1)) >> shift;
    if (magnitude < first_normal) value = bits_of(float_of(magnitude) + float_of(unit)) - unit;
    if (magnitude == kFloatInfinity || value > Format::largest) value = overflow;
    return value | sign;
}

struct Fp16Format {
    static constexpr int exponent_bits = 5, mantissa_bits = 10;
    static constexpr u32 largest = 0x7bff, nan = 0x7e00;
    static constexpr bool has_infinity = true, saturates = false;
};
struct Fp8Format {
    static constexpr int exponent_bits = 4, mantissa_bits = 3;
    static constexpr u32 largest = 0x7e, nan = 0x7f;
    static constexpr bool has_infinity = false, saturates = true;
};
struct Bf8Format {
    static constexpr int exponent_bits = 5, mantissa_bits = 2;
    static constexpr u32 largest = 0x7b, nan = 0x7e;
    static constexpr bool has_infinity = true, saturates = true;
};

}  // namespace tilewise::gpu
