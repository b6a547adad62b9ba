// SPDX-License-Identifier: MIT
// Moving 32-bit lanes between vectors: even and odd lanes of two vectors, and the kLanes x kLanes transpose in
// registers that packing is made of: 4x4 transposes within the 128-bit quarters by unpacking, then whole quarters (4x4
// of them with AVX-512, 2x2 with AVX2): 64 shuffles for 256 lanes with AVX-512.
#pragma once
#include "primitives.hpp"

namespace tilewise::cpu {

// Lane numbers for shuffles of two vectors: unpack 32 or 64 bits within each 128-bit quarter, every second quarter,
// every second lane.
#if defined(__AVX512F__)
#define TILEWISE_LO32 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define TILEWISE_HI32 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
#define TILEWISE_LO64 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define TILEWISE_HI64 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define TILEWISE_EVEN128 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27
#define TILEWISE_ODD128 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31
#define TILEWISE_EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define TILEWISE_ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#elif defined(__AVX2__)
#define TILEWISE_LO32 0, 8, 1, 9, 4, 12, 5, 13
#define TILEWISE_HI32 2, 10, 3, 11, 6, 14, 7, 15
#define TILEWISE_LO64 0, 1, 8, 9, 4, 5, 12, 13
#define TILEWISE_HI64 2, 3, 10, 11, 6, 7, 14, 15
#define TILEWISE_EVEN128 0, 1, 2, 3, 8, 9, 10, 11
#define TILEWISE_ODD128 4, 5, 6, 7, 12, 13, 14, 15
#define TILEWISE_EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define TILEWISE_ODD 1, 3, 5, 7, 9, 11, 13, 15
#else
#define TILEWISE_LO32 0, 4, 1, 5
#define TILEWISE_HI32 2, 6, 3, 7
#define TILEWISE_LO64 0, 1, 4, 5
#define TILEWISE_HI64 2, 3, 6, 7
#define TILEWISE_EVEN 0, 2, 4, 6
#define TILEWISE_ODD 1, 3, 5, 7
#endif

TILEWISE_INLINE U even_lanes(U a, U b) { return __builtin_shufflevector(a, b, TILEWISE_EVEN); }
TILEWISE_INLINE U odd_lanes(U a, U b) { return __builtin_shufflevector(a, b, TILEWISE_ODD); }

// Lane l of the result is lane from[l] of v.
TILEWISE_INLINE U permute(U v, U from) {
    U out;
#if defined(__AVX512F__)
    asm("vpermd %1, %2, %0" : "=v"(out) : "vm"(v), "v"(from));
#elif defined(__AVX2__)
    asm("vpermd %1, %2, %0" : "=x"(out) : "xm"(v), "x"(from));
#else
    for (int l = 0; l < kLanes; ++l) out[l] = v[from[l] % kLanes];
#endif
    return out;
}

// Words as the upper halves of lanes, zeros below: a bf16 becomes an fp32. The upper word of from[l] says which word lane l
// takes.
#if defined(__AVX512BW__)
inline constexpr bool kHasWordPermute = true;
inline constexpr U kLaneNumbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
TILEWISE_INLINE U high_words(Vec<u16> words, U from) {
    constexpr u32 kUpper = 0xaaaaaaaau;
    U out;
    asm("vpermw %g1, %2, %0%{%3%}%{z%}" : "=v"(out) : "v"(words), "v"(from), "Yk"(kUpper));
    return out;
}
// Words of two vectors side by side in each lane, a in the lower half; words whose bit of the mask is 0 become zero.
TILEWISE_INLINE U zip_words(Vec<u16> a, Vec<u16> b, u32 mask) {
    constexpr u32 kSecond = 2 * kLanes;
    U from = kLaneNumbers | (kLaneNumbers + kSecond) << 16;
    asm("vpermi2w %g2, %g1, %0%{%3%}%{z%}" : "+v"(from) : "v"(a), "v"(b), "Yk"(mask));
    return from;
}
#else
inline constexpr bool kHasWordPermute = false;
inline constexpr U kLaneNumbers = {};
TILEWISE_INLINE U high_words(Vec<u16>, U) { return U{}; }
TILEWISE_INLINE U zip_words(Vec<u16>, Vec<u16>, u32) { return U{}; }
#endif

TILEWISE_INLINE void transpose_quarters(U* v) {
    U t[kLanes];
    TILEWISE_UNROLL
    for (int i = 0; i < kLanes; i += 4) {  // 4x4 transposes inside the 128-bit quarters
        const U lo0 = __builtin_shufflevector(v[i], v[i + 1], TILEWISE_LO32);
        const U hi0 = __builtin_shufflevector(v[i], v[i + 1], TILEWISE_HI32);
        const U lo1 = __builtin_shufflevector(v[i + 2], v[i + 3], TILEWISE_LO32);
        const U hi1 = __builtin_shufflevector(v[i + 2], v[i + 3], TILEWISE_HI32);
        t[i] = __builtin_shufflevector(lo0, lo1, TILEWISE_LO64);
        t[i + 1] = __builtin_shufflevector(lo0, lo1, TILEWISE_HI64);
        t[i + 2] = __builtin_shufflevector(hi0, hi1, TILEWISE_LO64);
        t[i + 3] = __builtin_shufflevector(hi0, hi1, TILEWISE_HI64);
    }
    TILEWISE_UNROLL
    for (int i = 0; i < kLanes; ++i) v[i] = t[i];
}

// v[i][j] <-> v[j][i] for kLanes vectors.
TILEWISE_INLINE void transpose(U* v) {
    transpose_quarters(v);
#if defined(__AVX512F__)
    TILEWISE_UNROLL
    for (int i = 0; i < 4; ++i) {  // then a 4x4 transpose of the quarters themselves
        const U a = __builtin_shufflevector(v[i], v[i + 4], TILEWISE_EVEN128);
        const U b = __builtin_shufflevector(v[i], v[i + 4], TILEWISE_ODD128);
        const U c = __builtin_shufflevector(v[i + 8], v[i + 12], TILEWISE_EVEN128);
        const U d = __builtin_shufflevector(v[i + 8], v[i + 12], TILEWISE_ODD128);
        v[i] = __builtin_shufflevector(a, c, TILEWISE_EVEN128);
        v[i + 8] = __builtin_shufflevector(a, c, TILEWISE_ODD128);
        v[i + 4] = __builtin_shufflevector(b, d, TILEWISE_EVEN128);
        v[i + 12] = __builtin_shufflevector(b, d, TILEWISE_ODD128);
    }
#elif defined(__AVX2__)
    TILEWISE_UNROLL
    for (int i = 0; i < 4; ++i) {
        const U a = v[i];
        v[i] = __builtin_shufflevector(a, v[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        v[i + 4] = __builtin_shufflevector(a, v[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
#endif
}

}  // namespace tilewise::cpu
