// SPDX-License-Identifier: MIT
// The element types of the CUDA kernels as tags: how each is stored, and the way to fp32 and back. to_float is exact,
// from_float rounds to nearest even and keeps NaN. fp8 is e4m3fn (no infinity), bf8 is e5m2; both saturate at their
// largest finite value when written. Every function also compiles on a host (tests, emulation): what a GPU does in one
// instruction is done there with bits.
#pragma once
#include "../common/args.hpp"

#if defined(__CUDACC__)
#define TILEWISE_DEVICE __device__ __forceinline__
#define TILEWISE_UNROLL _Pragma("unroll")      // registers are indexed by numbers known at compile time
#define TILEWISE_ROLLED _Pragma("unroll 1")    // keeps code small
#define TILEWISE_UNROLL_4 _Pragma("unroll 4")  // four of a loop of unknown length at a time
#else
#define TILEWISE_DEVICE inline
#define TILEWISE_UNROLL
#define TILEWISE_ROLLED
#define TILEWISE_UNROLL_4
#endif

namespace tilewise::cuda {

using u8 = unsigned char;
using i8 = signed char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

// How operand tiles reach the arithmetic units; the names are those of configs.
enum class Pipeline { basic_v1, mem, compv3, compv4, compv5, compv6, comp_async, basic_async_v1, preshuffle };

// The numeric class of a config: strict adds up in fp32 (products of 8-bit floats by parts that are), fast as the matrix
// units do; tf32 rounds fp32 operands, tf32x3 makes three products of their halves.
enum class Math { strict, fast, tf32, tf32x3 };

// How the sums of tiles meet whose reduction several blocks share.
enum class StreamK { off, atomic, linear, tree };

// Division of numbers that mostly have 32 bits: one of 64 bits takes as long as reading a dozen partial sums.
TILEWISE_DEVICE Index quotient(Index x, Index divisor) {
    return (x | divisor) >> 32 == 0 ? Index(u32(x) / u32(divisor)) : x / divisor;
}

// Blocks that a unit has place for, which bounds the registers of a thread; a config says so where it is not one.
template <class Config>
inline constexpr int kBlocksPerUnit = 1;
template <class Config>
requires requires { Config::blocks_per_unit; }
inline constexpr int kBlocksPerUnit<Config> = Config::blocks_per_unit;

template <class T, class U>
inline constexpr bool kSame = false;
template <class T>
inline constexpr bool kSame<T, T> = true;

TILEWISE_DEVICE u32 bits_of(float x) { return __builtin_bit_cast(u32, x); }
TILEWISE_DEVICE float float_of(u32 bits) { return __builtin_bit_cast(float, bits); }

inline constexpr u32 kFloatMantissa = 23, kFloatBias = 127;
inline constexpr u32 kFloatMagnitude = 0x7fffffffu, kFloatInfinity = 0x7f800000u;
inline constexpr u16 kGpuNan16 = 0x7fff;  // what a GPU makes of every NaN, in fp16 and in bf16

// A small IEEE-like float with Format::{exponent_bits, mantissa_bits, largest, nan, has_infinity, saturates}.
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

struct Fp32 {
    using Storage = float;
    static constexpr int bytes = 4;
    static TILEWISE_DEVICE float to_float(Storage x) { return x; }
    static TILEWISE_DEVICE Storage from_float(float x) { return x; }
};

struct Fp16 {
    using Storage = u16;
    static constexpr int bytes = 2;
    static constexpr int exponent_bits = 5, mantissa_bits = 10;
    static constexpr u32 largest = 0x7bff, nan = 0x7e00;
    static constexpr bool has_infinity = true, saturates = false;
    static TILEWISE_DEVICE float to_float(Storage x) {
#if defined(__CUDACC__)
        float y;
        asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
        return y;
#else
        return decode_small<Fp16>(x);
#endif
    }
    static TILEWISE_DEVICE Storage from_float(float x) {
#if defined(__CUDACC__)
        u16 y;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
        return y;
#else
        return x == x ? u16(encode_small<Fp16>(x)) : kGpuNan16;
#endif
    }
};

struct Bf16 {
    using Storage = u16;
    static constexpr int bytes = 2;
    static TILEWISE_DEVICE float to_float(Storage x) { return float_of(u32(x) << 16); }
    static TILEWISE_DEVICE Storage from_float(float x) {
#if defined(__CUDACC__)
        u16 y;
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
        return y;
#else
        const u32 raw = bits_of(x);
        if ((raw & kFloatMagnitude) > kFloatInfinity) return kGpuNan16;
        return u16((raw + 0x7fffu + ((raw >> 16) & 1u)) >> 16);
#endif
    }
};

struct Fp8 {
    using Storage = u8;
    static constexpr int bytes = 1;
    static constexpr int exponent_bits = 4, mantissa_bits = 3;
    static constexpr u32 largest = 0x7e, nan = 0x7f;
    static constexpr bool has_infinity = false, saturates = true;
    static TILEWISE_DEVICE float to_float(Storage x) { return decode_small<Fp8>(x); }
    static TILEWISE_DEVICE Storage from_float(float x) { return u8(encode_small<Fp8>(x)); }
};

struct Bf8 {
    using Storage = u8;
    static constexpr int bytes = 1;
    static constexpr int exponent_bits = 5, mantissa_bits = 2;
    static constexpr u32 largest = 0x7b, nan = 0x7e;
    static constexpr bool has_infinity = true, saturates = true;
    static TILEWISE_DEVICE float to_float(Storage x) { return decode_small<Bf8>(x); }
    static TILEWISE_DEVICE Storage from_float(float x) { return u8(encode_small<Bf8>(x)); }
};

// Nearest even integer of x in [low, high]; NaN gives 0. Values of 2^23 and more have no fraction to round.
TILEWISE_DEVICE int to_nearest(float x, float low, float high) {
    constexpr float round = 12582912.0f, no_fraction = 4194304.0f;  // 1.5 * 2^23, 2^22
    if (!(x == x)) return 0;
    if (x <= low) return int(low);
    if (x >= high) return high >= 2147483648.0f ? 2147483647 : int(high);
    if (x > -no_fraction && x < no_fraction) {
        const float shifted = x + round;
        return int(shifted - round);
    }
    const int whole = int(x);  // towards zero; above 2^22 a fraction can only be a half
    const float rest = x - float(whole);
    return rest == 0.5f || rest == -0.5f ? whole + (whole & 1 ? (x < 0 ? -1 : 1) : 0) : whole;
}

struct Int8 {
    using Storage = i8;
    static constexpr int bytes = 1;
    static TILEWISE_DEVICE float to_float(Storage x) { return float(x); }
    static TILEWISE_DEVICE Storage from_float(float x) { return i8(to_nearest(x, -128.0f, 127.0f)); }
};

struct Int32 {
    using Storage = int;
    static constexpr int bytes = 4;
    static TILEWISE_DEVICE float to_float(Storage x) { return float(x); }
    static TILEWISE_DEVICE Storage from_float(float x) { return to_nearest(x, -2147483648.0f, 2147483648.0f); }
    static TILEWISE_DEVICE Storage from_double(double x) {  // has every integer, where a float has not
        constexpr double round = 6755399441055744.0;        // 1.5 * 2^52
        if (!(x == x)) return 0;
        if (x <= -2147483648.0) return -2147483647 - 1;
        if (x >= 2147483647.0) return 2147483647;
        const double shifted = x + round;
        return int(shifted - round);
    }
};

template <class T>
inline constexpr bool kIs8BitFloat = kSame<T, Fp8> || kSame<T, Bf8>;

// Products are added up in fp32, those of int8 in 32-bit integers.
template <class T>
struct SumType {
    using type = float;
};
template <>
struct SumType<Int8> {
    using type = int;
};
template <class T>
using SumOf = typename SumType<T>::type;

// The elements of a word as fp32, the lowest first. Pairs of 8-bit floats become fp16, which has them all, in one instruction.
template <class T>
TILEWISE_DEVICE void word_to_floats(u32 word, float (&x)[4 / T::bytes]) {
    if constexpr (T::bytes == 4) {
        x[0] = float_of(word);
    } else if constexpr (T::bytes == 2) {
        x[0] = T::to_float(u16(word)), x[1] = T::to_float(u16(word >> 16));
    } else {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
        TILEWISE_UNROLL
        for (int i = 0; i < 4; i += 2) {
            u32 halves;
            if constexpr (kSame<T, Fp8>) {
                asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(u16(word >> (8 * i))));
            } else {
                asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(u16(word >> (8 * i))));
            }
            x[i] = Fp16::to_float(u16(halves)), x[i + 1] = Fp16::to_float(u16(halves >> 16));
        }
#else
        for (int i = 0; i < 4; ++i) x[i] = T::to_float(u8(word >> (8 * i)));
#endif
    }
}
// Four products of bytes with sign, added up.
TILEWISE_DEVICE int add_products(int sum, u32 a, u32 b) {
#if defined(__CUDACC__)
    return __dp4a(int(a), int(b), sum);
#else
    for (int i = 0; i < 32; i += 8) sum += int(i8(a >> i)) * int(i8(b >> i));
    return sum;
#endif
}

// Two neighbouring elements of 16 bits in one register, the first in the low half.
template <class T>
TILEWISE_DEVICE u32 pack_pair(float first, float second) {
    static_assert(T::bytes == 2, "a pair of 16-bit elements");
#if defined(__CUDACC__)
    u32 packed;
    if constexpr (kSame<T, Fp16>) {
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(second), "f"(first));
    } else {
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(second), "f"(first));
    }
    return packed;
#else
    return u32(T::from_float(first)) | u32(T::from_float(second)) << 16;
#endif
}
// The same of 8 bits.
template <class T>
TILEWISE_DEVICE u16 pack_bytes(float first, float second) {
    static_assert(T::bytes == 1, "a pair of 8-bit elements");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    if constexpr (kIs8BitFloat<T>) {
        u16 packed;
        if constexpr (kSame<T, Fp8>) {
            asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(packed) : "f"(second), "f"(first));
        } else {
            asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(packed) : "f"(second), "f"(first));
        }
        return packed;
    }
#endif
    return u16(u8(T::from_float(first)) | u8(T::from_float(second)) << 8);
}

}  // namespace tilewise::cuda
