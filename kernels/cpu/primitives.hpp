// SPDX-License-Identifier: MIT
// The machine under the CPU kernels: vectors of the widest kind that the compile flags allow (64 bytes with AVX-512, 32
// with AVX2, 16 otherwise), unaligned loads and stores, fused multiply-add, the dot-product instructions, conversions
// of lanes, prefetch. Nothing else under kernels/cpu names an instruction (amx_core.hpp aside). Built from the
// compilers' vector extensions; instructions that g++ and clang++ name differently are one-line inline assembly.
#pragma once
#include "../common/args.hpp"

namespace tilewise::cpu {

using i8 = signed char;
using u8 = unsigned char;
using i16 = short;
using u16 = unsigned short;
using i32 = int;
using u32 = unsigned;

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif
inline constexpr int kLanes = kVectorBytes / 4;  // 32-bit lanes: every accumulator and every packed unit has 32 bits
inline constexpr int kCacheLine = 64;

#define TILEWISE_INLINE inline __attribute__((always_inline))
#define TILEWISE_NOINLINE __attribute__((noinline))
#define TILEWISE_OUTER __attribute__((noinline, cold))  // code around the hot loops: compiled for size, so quickly
#if defined(__clang__)
#define TILEWISE_UNROLL _Pragma("unroll")
#else
#define TILEWISE_UNROLL _Pragma("GCC unroll 32")
#endif

template <class T, int N>
struct VectorOf {
    typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T, int N = kLanes>
using Vec = typename VectorOf<T, N>::type;
using F = Vec<float>;
using U = Vec<u32>;
using I = Vec<i32>;
using D = Vec<double, kLanes / 2>;  // for arithmetic on 32-bit integers that must stay exact
template <class V>
inline constexpr int kLanesOf = sizeof(V) / sizeof(V{}[0]);

template <class T, class A>
inline constexpr bool kSame = false;
template <class T>
inline constexpr bool kSame<T, T> = true;

template <bool condition, class T, class U>
struct ConditionalType {
    using type = T;
};
template <class T, class U>
struct ConditionalType<false, T, U> {
    using type = U;
};

template <class T>
TILEWISE_INLINE T least(T a, T b) {
    return a < b ? a : b;
}
TILEWISE_INLINE Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }
TILEWISE_INLINE Index round_up(Index a, Index b) { return ceil_div(a, b) * b; }

template <class V>
TILEWISE_INLINE V load(const void* p) {
    V v;
    __builtin_memcpy(&v, p, sizeof(V));
    return v;
}
template <class V>
TILEWISE_INLINE void store(void* p, V v) {
    __builtin_memcpy(p, &v, sizeof(V));
}

// The first n bytes of a vector, the rest zero; reads nothing past them.
template <class V>
TILEWISE_INLINE V load_first(const void* p, Index bytes) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    if constexpr (sizeof(V) >= 16 && sizeof(V) <= 64) {
        V v;
        const unsigned long long mask = bytes >= 64 ? ~0ull : (1ull << bytes) - 1;
        asm("vmovdqu8 %2, %0%{%1%}%{z%}" : "=v"(v) : "Yk"(mask), "m"(*static_cast<const char(*)[sizeof(V)]>(p)));
        return v;
    }
#endif
    V v = {};
    char* to = reinterpret_cast<char*>(&v);
    for (Index i = 0; i < bytes; ++i) to[i] = static_cast<const char*>(p)[i];
    return v;
}
// Writes the first n bytes of a vector and nothing else.
template <class V>
TILEWISE_INLINE void store_first(void* p, V v, Index bytes) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    if constexpr (sizeof(V) >= 16 && sizeof(V) <= 64) {
        const unsigned long long mask = bytes >= 64 ? ~0ull : (1ull << bytes) - 1;
        asm volatile("vmovdqu8 %1, %0%{%2%}" : "+m"(*static_cast<char(*)[sizeof(V)]>(p)) : "v"(v), "Yk"(mask));
        return;
    }
#endif
    const char* from = reinterpret_cast<const char*>(&v);
    for (Index i = 0; i < bytes; ++i) static_cast<char*>(p)[i] = from[i];
}

// Keeps the compiler from deriving further addresses from this pointer ahead of time (they would end up on the stack).
template <class T>
TILEWISE_INLINE void walk(T*& p, Index elements) {
    p += elements;
    asm("" : "+r"(p));
}

// The same for a number.
TILEWISE_INLINE void count_up(Index& i, Index by) {
    i += by;
    asm("" : "+r"(i));
}

// Keeps a value in a register that several instructions use, where the compiler would have each read it from memory.
template <class V>
TILEWISE_INLINE void hold(V& v) {
    asm("" : "+v"(v));
}

TILEWISE_INLINE void prefetch(const void* p) { __builtin_prefetch(p, 0, 3); }
TILEWISE_INLINE void prefetch_for_write(const void* p) { __builtin_prefetch(p, 1, 3); }

template <class V, class T>
TILEWISE_INLINE V splat(T x) {
    return x - V{};  // x - 0 is x for every x, also for -0
}

// a where the mask lane is all ones, b where it is zero.
template <class V, class M>
TILEWISE_INLINE V select(M mask, V a, V b) {
    return mask ? a : b;
}

// x between two limits; NaN stays.
template <class V>
TILEWISE_INLINE V limited(V x, V low, V high) {
    const V above = select(x < low, low, x);
    return select(above > high, high, above);
}

// One rounding where the flags give a fused instruction (one expression: both compilers contract it), two elsewhere.
TILEWISE_INLINE F fma(F a, F b, F c) { return a * b + c; }

// a * 2^n for whole n: one rounding, infinity and denormals included.
#if defined(__AVX512F__)
inline constexpr bool kHasScale = true;
TILEWISE_INLINE F scale_by_power(F a, F n) {
    asm("vscalefps %1, %0, %0" : "+v"(a) : "v"(n));
    return a;
}
#else
inline constexpr bool kHasScale = false;
TILEWISE_INLINE F scale_by_power(F a, F) { return a; }
#endif

// c + a.lo*b.lo + a.hi*b.hi for pairs of bf16 in each lane.
#if defined(__AVX512BF16__)
inline constexpr bool kHasBf16Dot = true;
TILEWISE_INLINE F dot_bf16(U a, U b, F c) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}
// Nearest even; denormals become zero, as in the sums of dot_bf16.
TILEWISE_INLINE Vec<u16> float_to_bf16(F f) {
    Vec<u16> out;
    asm("vcvtneps2bf16 %1, %0" : "=v"(out) : "v"(f));
    return out;
}
#else
inline constexpr bool kHasBf16Dot = false;
TILEWISE_INLINE F dot_bf16(U, U, F c) { return c; }
TILEWISE_INLINE Vec<u16> float_to_bf16(F) { return Vec<u16>{}; }
#endif

// c + the four products of unsigned bytes of a and signed bytes of b in each lane.
#if defined(__AVX512VNNI__)
inline constexpr bool kHasByteDot = true;
TILEWISE_INLINE I dot_bytes(U a, U b, I c) {
    asm("vpdpbusd %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}
#else
inline constexpr bool kHasByteDot = false;
TILEWISE_INLINE I dot_bytes(U, U, I c) { return c; }
#endif

// c + a.lo*b.lo + a.hi*b.hi for pairs of signed 16-bit integers in each lane.
TILEWISE_INLINE I dot_i16(U a, U b, I c) {
    I product;
#if defined(__AVX512BW__)
    asm("vpmaddwd %2, %1, %0" : "=v"(product) : "v"(a), "v"(b));
#elif defined(__AVX2__)
    asm("vpmaddwd %2, %1, %0" : "=x"(product) : "x"(a), "x"(b));
#else
    product = reinterpret_cast<I>(a);
    asm("pmaddwd %1, %0" : "+x"(product) : "x"(b));
#endif
    return c + product;
}

// Widening to and narrowing from 32-bit lanes: one instruction each where there is one (g++ 12 would go lane by lane).
#if defined(__AVX2__)
#define TILEWISE_WIDEN(instruction, From, To, lanes)                     \
    TILEWISE_INLINE To widen(Vec<From, lanes> v) {                       \
        Vec<From, (sizeof(v) < 16 ? 16 / sizeof(From) : lanes)> in = {}; \
        __builtin_memcpy(&in, &v, sizeof(v));                            \
        To out;                                                          \
        asm(instruction " %1, %0" : "=v"(out) : "v"(in));                \
        return out;                                                      \
    }
TILEWISE_WIDEN("vpmovzxbd", u8, U, kLanes)
TILEWISE_WIDEN("vpmovsxbd", i8, I, kLanes)
TILEWISE_WIDEN("vpmovzxwd", u16, U, kLanes)
using WordPairs = Vec<i16, 2 * kLanes>;
TILEWISE_WIDEN("vpmovsxbw", i8, WordPairs, 2 * kLanes)
#undef TILEWISE_WIDEN
#else
using WordPairs = Vec<i16, 2 * kLanes>;
TILEWISE_INLINE U widen(Vec<u8> v) { return __builtin_convertvector(v, U); }
TILEWISE_INLINE I widen(Vec<i8> v) { return __builtin_convertvector(v, I); }
TILEWISE_INLINE U widen(Vec<u16> v) { return __builtin_convertvector(v, U); }
TILEWISE_INLINE WordPairs widen(Vec<i8, 2 * kLanes> v) { return __builtin_convertvector(v, WordPairs); }
#endif
#if defined(__AVX512F__)
TILEWISE_INLINE Vec<u8> narrow_to_bytes(U v) {
    Vec<u8> out;
    asm("vpmovdb %1, %0" : "=v"(out) : "v"(v));
    return out;
}
TILEWISE_INLINE Vec<u16> narrow_to_words(U v) {
    Vec<u16> out;
    asm("vpmovdw %1, %0" : "=v"(out) : "v"(v));
    return out;
}
#else
TILEWISE_INLINE Vec<u8> narrow_to_bytes(U v) { return __builtin_convertvector(v, Vec<u8>); }
TILEWISE_INLINE Vec<u16> narrow_to_words(U v) { return __builtin_convertvector(v, Vec<u16>); }
#endif

#if defined(__F16C__)
inline constexpr bool kHasHalf = true;
TILEWISE_INLINE F half_to_float(Vec<u16> h) {
    F f;
    asm("vcvtph2ps %1, %0" : "=v"(f) : "v"(h));
    return f;
}
TILEWISE_INLINE Vec<u16> float_to_half(F f) {
    Vec<u16> h;
    asm("vcvtps2ph $0, %1, %0" : "=v"(h) : "v"(f));  // 0: round to nearest even
    return h;
}
#else
inline constexpr bool kHasHalf = false;
TILEWISE_INLINE F half_to_float(Vec<u16>) { return F{}; }
TILEWISE_INLINE Vec<u16> float_to_half(F) { return Vec<u16>{}; }
#endif

// The sum over the lanes, as a tree.
template <class T>
TILEWISE_INLINE T sum_lanes(Vec<T, 4> v) {
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1);
    return v[0] + v[1];
}
template <class T>
TILEWISE_INLINE T sum_lanes(Vec<T, 8> v) {
    return sum_lanes<T>(__builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7));
}
template <class T>
TILEWISE_INLINE T sum_lanes(Vec<T, 16> v) {
    return sum_lanes<T>(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                        __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
}

}  // namespace tilewise::cpu
