// SPDX-License-Identifier: MIT
// The element types as tags, and the way between kLanes elements in memory and kLanes fp32 (or fp64) lanes: decode
// reads exactly, encode rounds to nearest even. fp8 is e4m3fn (no infinity), bf8 is e5m2; both saturate at their
// largest finite value when written, NaN stays NaN. Denormals are kept whatever the flush modes of the thread are, but for
// those of bf16 where AVX512_BF16 writes them.
#pragma once
#include "shuffle.hpp"

namespace tilewise::cpu {

struct Fp32 {
    using Storage = float;
};
struct Fp16 {
    using Storage = u16;
    static constexpr int exponent_bits = 5, mantissa_bits = 10;
    static constexpr u32 largest = 0x7bff, nan = 0x7e00;
    static constexpr bool has_infinity = true, saturates = false;
};
struct Bf16 {
    using Storage = u16;
};
struct Fp8 {
    using Storage = u8;
    static constexpr int exponent_bits = 4, mantissa_bits = 3;
    static constexpr u32 largest = 0x7e, nan = 0x7f;
    static constexpr bool has_infinity = false, saturates = true;
};
struct Bf8 {
    using Storage = u8;
    static constexpr int exponent_bits = 5, mantissa_bits = 2;
    static constexpr u32 largest = 0x7b, nan = 0x7e;
    static constexpr bool has_infinity = true, saturates = true;
};
struct Int8 {
    using Storage = i8;
};
struct Int32 {
    using Storage = i32;
};

template <class T>
inline constexpr bool kIsInteger = kSame<T, Int8> || kSame<T, Int32>;
template <class T>
inline constexpr int kBytes = sizeof(typename T::Storage);

inline constexpr int kFloatMantissa = 23, kFloatBias = 127;
inline constexpr u32 kSignBit = 0x80000000u, kMagnitude = 0x7fffffffu, kFloatInfinity = 0x7f800000u;

template <class V>
TILEWISE_INLINE F as_float(V v) {
    return reinterpret_cast<F>(v);
}
TILEWISE_INLINE U as_bits(F v) { return reinterpret_cast<U>(v); }

// Any small IEEE-like float in the low bits of each lane -> fp32.
template <class T>
TILEWISE_INLINE F decode_small(U x) {
    constexpr int bits = T::exponent_bits + T::mantissa_bits, shift = kFloatMantissa - T::mantissa_bits;
    constexpr u32 rebias = u32(kFloatBias - ((1 << (T::exponent_bits - 1)) - 1)) << kFloatMantissa;
    constexpr u32 one_up = rebias + (1u << kFloatMantissa);  // the exponent of denormals is that of the first normals
    constexpr u32 first_special = T::has_infinity ? ((1u << T::exponent_bits) - 1) << T::mantissa_bits : T::nan;
    const U sign = (x >> bits) << 31, magnitude = x & splat<U>((1u << bits) - 1), wide = magnitude << shift;
    const F denormal = as_float(wide + one_up) - as_float(splat<U>(one_up));
    U value = select(magnitude < (1u << T::mantissa_bits), as_bits(denormal), wide + rebias);
    value = select(magnitude >= first_special, wide | kFloatInfinity, value);
    return as_float(value | sign);
}

// kLanes consecutive elements as fp32 lanes.
template <class T>
TILEWISE_INLINE F decode(Vec<typename T::Storage> raw) {
    if constexpr (kSame<T, Fp32>) {
        return raw;
    } else if constexpr (kSame<T, Bf16>) {
        return as_float(widen(raw) << 16);
    } else if constexpr (kSame<T, Fp16> && kHasHalf) {
        return half_to_float(raw);
    } else if constexpr (kSame<T, Bf8> && kHasHalf) {
        return half_to_float(narrow_to_words(widen(raw) << 8));  // bf8 is the upper byte of a half
    } else if constexpr (kSame<T, Int32>) {
        return __builtin_convertvector(raw, F);
    } else if constexpr (kSame<T, Int8>) {
        return __builtin_convertvector(widen(raw), F);
    } else {
        return decode_small<T>(widen(raw));
    }
}
template <class T>
TILEWISE_INLINE F load_floats(const typename T::Storage* p) {
    return decode<T>(load<Vec<typename T::Storage>>(p));
}

// fp32 -> any small IEEE-like float, in the low bits of each lane.
template <class T>
TILEWISE_INLINE U encode_small(F v) {
    constexpr int shift = kFloatMantissa - T::mantissa_bits, bits = T::exponent_bits + T::mantissa_bits;
    constexpr u32 bias = (1u << (T::exponent_bits - 1)) - 1, rebias = u32(kFloatBias - bias) << kFloatMantissa;
    constexpr u32 first_normal = rebias + (1u << kFloatMantissa);
    constexpr u32 overflow = T::saturates ? T::largest : T::largest + 1;
    const U raw = as_bits(v), sign = (raw >> 31) << bits, magnitude = raw & splat<U>(kMagnitude);
    const U odd = (magnitude >> shift) & 1u;
    U value = (magnitude - rebias + odd + ((1u << (shift - 1)) - 1)) >> shift;  // nearest even in integers
    const F unit =
        as_float(splat<U>(first_normal + (u32(shift) << kFloatMantissa)));  // its last place: a denormal step
    value = select(magnitude < first_normal, as_bits(as_float(magnitude) + unit) - as_bits(unit), value);
    value = select(value > T::largest || magnitude >= kFloatInfinity, splat<U>(overflow), value);
    value = select(magnitude > kFloatInfinity, splat<U>(T::nan), value);
    return value | sign;
}

TILEWISE_INLINE U encode_bf16(F v) {
    const U raw = as_bits(v), rounded = (raw + 0x7fffu + ((raw >> 16) & 1u)) >> 16;
    return select((raw & kMagnitude) > kFloatInfinity, (raw >> 16) | 0x40u,
                  rounded);  // a NaN must not round to infinity
}

// Nearest even integer, clamped to what T holds; NaN gives 0. Lanes of fp64 for Int32, fp32 is enough for Int8.
template <class T, class V>
TILEWISE_INLINE Vec<i32, kLanesOf<V>> encode_integer(V v) {
    using Lane = decltype(v[0] + v[0]);
    static_assert(sizeof(Lane) == 8 || kSame<T, Int8>, "an int32 output needs fp64 lanes");
    constexpr Lane low = kSame<T, Int8> ? Lane(-128) : Lane(-2147483648.0);
    constexpr Lane high = kSame<T, Int8> ? Lane(127) : Lane(2147483647.0);
    constexpr Lane round = sizeof(Lane) == 8 ? Lane(6755399441055744.0) : Lane(12582912.0);  // leaves no fraction bits
    v = select(v == v, v, V{});
    v = select(v < low, splat<V>(low), select(v > high, splat<V>(high), v));
    return __builtin_convertvector((v + round) - round, Vec<i32, kLanesOf<V>>);
}

template <class T, class V>
TILEWISE_INLINE Vec<typename T::Storage, kLanesOf<V>> encode(V v) {
    if constexpr (kSame<T, Fp32>) {
        return v;
    } else if constexpr (kSame<T, Int32>) {
        return encode_integer<T>(v);
    } else if constexpr (kSame<T, Int8>) {
        return reinterpret_cast<Vec<i8>>(narrow_to_bytes(reinterpret_cast<U>(encode_integer<T>(v))));
    } else if constexpr (kSame<T, Bf16> && kHasBf16Dot) {
        return float_to_bf16(v);
    } else if constexpr (kSame<T, Bf16>) {
        return narrow_to_words(encode_bf16(v));
    } else if constexpr (kSame<T, Fp16> && kHasHalf) {
        return float_to_half(v);
    } else if constexpr (kSame<T, Fp16>) {
        return narrow_to_words(encode_small<T>(v));
    } else {
        return narrow_to_bytes(encode_small<T>(v));
    }
}

}  // namespace tilewise::cpu
