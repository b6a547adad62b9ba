// SPDX-License-Identifier: MIT
// The element types of GPU kernels as tags: how each is stored, and the way to fp32 and back. to_float is exact, from_float rounds to
// nearest even and keeps NaN.
#pragma once
#include "../common/args.hpp"
#include "conversions.hpp"

namespace tilewise::gpu {

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

template <bool first, class T, class U>
struct ChooseType {
    using type = T;
};
template <class T, class U>
struct ChooseType<false, T, U> {
    using type = U;
};

template <class T, class U>
inline constexpr bool kSame = false;
template <class T>
inline constexpr bool kSame<T, T> = true;

struct Fp32 {
    using Storage = float;
    static constexpr int bytes = 4;
    static TILEWISE_DEVICE float to_float(Storage x) { return x; }
    static TILEWISE_DEVICE Storage from_float(float x) { return x; }
};

struct Fp16 {
    using Storage = u16;
    static constexpr int bytes = 2;
    static TILEWISE_DEVICE float to_float(Storage x) { return fp16_to_float(x); }
    static TILEWISE_DEVICE Storage from_float(float x) { return float_to_fp16(x); }
};

struct Bf16 {
    using Storage = u16;
    static constexpr int bytes = 2;
    static TILEWISE_DEVICE float to_float(Storage x) { return float_of(u32(x) << 16); }
    static TILEWISE_DEVICE Storage from_float(float x) { return float_to_bf16(x); }
};

struct Fp8 {
    using Storage = u8;
    static constexpr int bytes = 1;
    static TILEWISE_DEVICE float to_float(Storage x) { return decode_small<Fp8Format>(x); }
    static TILEWISE_DEVICE Storage from_float(float x) { return u8(encode_small<Fp8Format>(x)); }
};

struct Bf8 {
    using Storage = u8;
    static constexpr int bytes = 1;
    static TILEWISE_DEVICE float to_float(Storage x) { return decode_small<Bf8Format>(x); }
    static TILEWISE_DEVICE Storage from_float(float x) { return u8(encode_small<Bf8Format>(x)); }
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

// The elements of a word as fp32, the lowest first.
template <class T>
TILEWISE_DEVICE void word_to_floats(u32 word, float (&x)[4 / T::bytes]) {
    if constexpr (T::bytes == 4) {
        x[0] = float_of(word);
    } else if constexpr (T::bytes == 2) {
        x[0] = T::to_float(u16(word)), x[1] = T::to_float(u16(word >> 16));
    } else if constexpr (kSame<T, Fp8>) {
        fp8_to_floats(word, x);
    } else if constexpr (kSame<T, Bf8>) {
        bf8_to_floats(word, x);
    } else {
        for (int i = 0; i < 4; ++i) x[i] = T::to_float(u8(word >> (8 * i)));
    }
}

// Two neighbouring elements of 16 bits in one register, the first in the low half.
template <class T>
TILEWISE_DEVICE u32 pack_pair(float first, float second) {
    static_assert(T::bytes == 2, "a pair of 16-bit elements");
    if constexpr (kSame<T, Fp16>) {
        return floats_to_fp16(first, second);
    } else {
        return floats_to_bf16(first, second);
    }
}
// The same of 8 bits.
template <class T>
TILEWISE_DEVICE u16 pack_bytes(float first, float second) {
    static_assert(T::bytes == 1, "a pair of 8-bit elements");
    if constexpr (kSame<T, Fp8>) {
        return floats_to_fp8(first, second);
    } else if constexpr (kSame<T, Bf8>) {
        return floats_to_bf8(first, second);
    } else {
        return u16(u8(T::from_float(first)) | u8(T::from_float(second)) << 8);
    }
}

}  // namespace tilewise::gpu
