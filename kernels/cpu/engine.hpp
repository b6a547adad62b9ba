// SPDX-License-Identifier: MIT
// An engine is one step of a vector micro-kernel, for each way of multiplying. All operands are packed into 32-bit units
// that hold `depth` consecutive k of one row of A or column of B; a step is acc[lane] += unit_a . unit_b[lane]:
//   FloatEngine  depth 1  an fp32 (other floats are converted while packing)        fused multiply-add
//   Bf16Engine   depth 2  two bf16 (fp8 and bf8 convert exactly)                    vdpbf16ps, denormals are zero
//   BytesEngine  depth 4  four int8; A is stored + 128, 128 * sum(B) is taken off   vpdpbusd
//   WordsEngine  depth 2  two int8 widened to 16 bits                               vpmaddwd
//   IntEngine    depth 1  an int8 widened to 32 bits                                multiply, add
// along_k makes kLanes units from consecutive k; along_lanes makes kLanes units from `depth` rows of kLanes elements,
// and with a null edge it checks nothing.
#pragma once
#include "types.hpp"

namespace tilewise::cpu {

template <class T>
using Elements = const typename T::Storage*;

// These may be read at an edge: k_left rows, in each `valid` lanes; and anything below `limit`.
template <class T>
struct Edge {
    Index k_left, valid;
    Elements<T> limit;
};

// kLanes elements at p. With an edge only the valid lanes count, the others are values of the matrix or zero.
template <class T>
TILEWISE_INLINE Vec<typename T::Storage> fetch(Elements<T> p, const Edge<T>* edge) {
    using Raw = Vec<typename T::Storage>;
    if (!edge || edge->valid >= kLanes || edge->limit - p >= kLanes) return load<Raw>(p);
    return load_first<Raw>(p, edge->valid * kBytes<T>);
}
// Is row i of the unit beyond the end?
template <class T>
TILEWISE_INLINE bool past(const Edge<T>* edge, Index i) {
    return edge && i >= edge->k_left;
}

struct FloatEngine {
    using Acc = float;
    static constexpr int depth = 1;
    static constexpr bool compensates = false;
    template <class T>
    static constexpr bool in_place = kSame<T, Fp32>;  // memory already holds units
    static TILEWISE_INLINE F step(F acc, U a, U b) { return fma(as_float(a), as_float(b), acc); }
    template <class T, bool is_a>
    static TILEWISE_INLINE U along_k(Elements<T> p) {
        return as_bits(load_floats<T>(p));
    }
    template <class T, bool is_a>
    static TILEWISE_INLINE U along_lanes(Elements<T> p, Index, const Edge<T>* edge) {
        return as_bits(decode<T>(fetch<T>(p, edge)));
    }
};

struct Bf16Engine {
    using Acc = float;
    static constexpr int depth = 2;
    static constexpr bool compensates = false;
    template <class T>
    static constexpr bool in_place = kSame<T, Bf16>;
    static TILEWISE_INLINE F step(F acc, U a, U b) { return dot_bf16(a, b, acc); }
    template <class T>
    static TILEWISE_INLINE U high_half(Vec<typename T::Storage> raw) {
        return as_bits(decode<T>(raw)) & 0xffff0000u;  // exact: no more than 8 significant bits come in
    }
    template <class T, bool is_a>
    static TILEWISE_INLINE U along_k(Elements<T> p) {
        if constexpr (kSame<T, Bf16>) return load<U>(p);
        const U lo = as_bits(load_floats<T>(p)), hi = as_bits(load_floats<T>(p + kLanes));
        return (even_lanes(lo, hi) >> 16) | (odd_lanes(lo, hi) & 0xffff0000u);
    }
    template <class T, bool is_a>
    static TILEWISE_INLINE U along_lanes(Elements<T> p, Index k_stride, const Edge<T>* edge) {
        const U first = high_half<T>(fetch<T>(p, edge)) >> 16;
        return past(edge, 1) ? first : first | high_half<T>(fetch<T>(p + k_stride, edge));
    }
};

struct BytesEngine {
    using Acc = i32;
    static constexpr int depth = 4;
    static constexpr bool compensates = true;
    static constexpr u32 offset_a = 0x80808080u;  // + 128 in every byte: the instruction wants A unsigned
    template <class T>
    static constexpr bool in_place = false;
    static TILEWISE_INLINE I step(I acc, U a, U b) { return dot_bytes(a, b, acc); }
    static TILEWISE_INLINE I compensation(I acc, U b) { return dot_bytes(splat<U>(offset_a), b, acc); }
    template <class T, bool is_a>
    static TILEWISE_INLINE U along_k(Elements<T> p) {
        return load<U>(p) ^ (is_a ? offset_a : 0u);
    }
    template <class T, bool is_a>
    static TILEWISE_INLINE U along_lanes(Elements<T> p, Index k_stride, const Edge<T>* edge) {
        U units = {};
        TILEWISE_UNROLL
        for (int i = 0; i < depth; ++i) {
            if (past(edge, i)) break;
            const auto bytes = reinterpret_cast<Vec<u8>>(fetch<T>(p + i * k_stride, edge));
            units |= widen(bytes) << (8 * i);
        }
        return units ^ (is_a ? offset_a : 0u);
    }
};

struct WordsEngine {
    using Acc = i32;
    static constexpr int depth = 2;
    static constexpr bool compensates = false;
    template <class T>
    static constexpr bool in_place = false;
    static TILEWISE_INLINE I step(I acc, U a, U b) { return dot_i16(a, b, acc); }
    template <class T, bool is_a>
    static TILEWISE_INLINE U along_k(Elements<T> p) {
        return reinterpret_cast<U>(widen(load<Vec<i8, 2 * kLanes>>(p)));
    }
    template <class T, bool is_a>
    static TILEWISE_INLINE U along_lanes(Elements<T> p, Index k_stride, const Edge<T>* edge) {
        const U first = reinterpret_cast<U>(widen(fetch<T>(p, edge))) & 0xffffu;
        if (past(edge, 1)) return first;
        return first | reinterpret_cast<U>(widen(fetch<T>(p + k_stride, edge))) << 16;
    }
};

struct IntEngine {
    using Acc = i32;
    static constexpr int depth = 1;
    static constexpr bool compensates = false;
    template <class T>
    static constexpr bool in_place = false;
    static TILEWISE_INLINE I step(I acc, U a, U b) { return acc + reinterpret_cast<I>(a * b); }
    template <class T, bool is_a>
    static TILEWISE_INLINE U along_k(Elements<T> p) {
        return reinterpret_cast<U>(widen(load<Vec<i8>>(p)));
    }
    template <class T, bool is_a>
    static TILEWISE_INLINE U along_lanes(Elements<T> p, Index, const Edge<T>* edge) {
        return reinterpret_cast<U>(widen(fetch<T>(p, edge)));
    }
};

template <bool integer, int depth>
struct EngineFor;
template <>
struct EngineFor<false, 1> {
    using type = FloatEngine;
};
template <>
struct EngineFor<false, 2> {
    using type = Bf16Engine;
};
template <>
struct EngineFor<true, 1> {
    using type = IntEngine;
};
template <>
struct EngineFor<true, 2> {
    using type = WordsEngine;
};
template <>
struct EngineFor<true, 4> {
    using type = BytesEngine;
};

}  // namespace tilewise::cpu
