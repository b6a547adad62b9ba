// SPDX-License-Identifier: MIT
// The vector micro-kernel: rows x (vectors * kLanes) sums held in registers over a whole range of k. One step loads
// `vectors` vectors of B units, broadcasts one unit of A after the other and multiplies it with all of them, so a step
// reads 4 * (rows + vectors * kLanes) bytes for rows * vectors multiply-adds; sums are read and written once.
// Registers: rows * vectors sums, `vectors` of B, one or two broadcasts: 14x2, 9x3, 6x4 or 28x1 of 32 with AVX-512, 6x2
// or 4x3 of 16 without.
#pragma once
#include "engine.hpp"

namespace tilewise::cpu {

inline constexpr int kRowsPerPointer = 4;   // rows of A addressed from one register: +0, +s, +2s, +3s
inline constexpr int kPrefetchSteps = 768;  // how many multiply-adds ahead B is prefetched: about as many clocks

// Where the units of A are: either [k][row] with k `bytes` apart (packed, or in place with contiguous rows), or in
// place with contiguous k and rows `bytes` apart.
struct UnitsOfA {
    const char* p;
    Index bytes;
};

// The end of a register tile: its sums replace what is in memory or are added to it; or, in registers, a bias,
// elements of a D tensor (its rows as far apart as those of C) and limits follow.
struct Ending {
    bool accumulate = false, limited = false;
    const float* bias = nullptr;  // of the first column, or null
    const float* d = nullptr;     // of the first element, or null
    float low = 0.0f, high = 0.0f;
};

template <int rows, int vectors>
TILEWISE_INLINE void limit(F (&sums)[rows][vectors], const Ending& ending, Index c_stride) {
    const F low = splat<F>(ending.low), high = splat<F>(ending.high);
    F bias[vectors];
    TILEWISE_UNROLL
    for (int j = 0; j < vectors; ++j) {
        bias[j] = ending.bias ? load<F>(ending.bias + j * kLanes) : splat<F>(-0.0f);  // x + -0 is x for every x
    }
    const float* d = ending.d;
    TILEWISE_UNROLL
    for (int i = 0; i < rows; ++i) {
        TILEWISE_UNROLL
        for (int j = 0; j < vectors; ++j) {
            F x = sums[i][j] + bias[j];
            if (d) x += load<F>(d + j * kLanes);
            sums[i][j] = limited(x, low, high);
        }
        if (d) walk(d, c_stride);
    }
}

template <class E, int rows, int vectors, bool a_by_rows>
struct Micro {
    using Acc = typename E::Acc;
    using V = Vec<Acc>;
    static constexpr int kPrefetchUnits =
        kPrefetchSteps / (rows * vectors) < 96 ? kPrefetchSteps / (rows * vectors) : 96;
    static constexpr int kPointers = a_by_rows ? (rows + kRowsPerPointer - 1) / kRowsPerPointer : 1;

    static TILEWISE_INLINE void step(V (&acc)[rows][vectors], const char* const (&a)[kPointers], Index a_bytes,
                                     const u32* b) {
        U bv[vectors];
        TILEWISE_UNROLL
        for (int j = 0; j < vectors; ++j) bv[j] = load<U>(b + j * kLanes);
        TILEWISE_UNROLL
        for (int i = 0; i < rows; ++i) {
            u32 unit;
            if constexpr (a_by_rows) {
                __builtin_memcpy(&unit, a[i / kRowsPerPointer] + (i % kRowsPerPointer) * a_bytes, sizeof(unit));
            } else {
                __builtin_memcpy(&unit, a[0] + i * sizeof(unit), sizeof(unit));
            }
            const U av = splat<U>(unit);
            TILEWISE_UNROLL
            for (int j = 0; j < vectors; ++j) acc[i][j] = E::step(acc[i][j], av, bv[j]);
        }
    }

    // c[row][lane] (stride apart) becomes the sums over `units` steps, as `ending` says.
    static TILEWISE_NOINLINE void run(UnitsOfA units_a, const u32* b, Index b_stride, Index units, Acc* c,
                                      Index c_stride, const Ending& ending) {
        V acc[rows][vectors] = {};
        const char* a[kPointers];
        const Index a_bytes = units_a.bytes;
        TILEWISE_UNROLL
        for (int i = 0; i < kPointers; ++i) {
            a[i] = units_a.p + i * kRowsPerPointer * a_bytes;
        }
        Acc* row = c;
        TILEWISE_UNROLL
        for (int i = 0; i < rows; ++i, walk(row, c_stride)) prefetch_for_write(row);
        for (Index k = 0; k < units; ++k) {
            TILEWISE_UNROLL
            for (int j = 0; j < vectors; ++j) prefetch(b + kPrefetchUnits * b_stride + j * kLanes);
            step(acc, a, a_bytes, b);
            b += b_stride;
            TILEWISE_UNROLL
            for (int i = 0; i < kPointers; ++i) a[i] += a_by_rows ? Index(sizeof(u32)) : a_bytes;
        }
        if constexpr (E::compensates) compensate(acc, b);
        if constexpr (kSame<Acc, float>) {
            if (ending.limited) limit(acc, ending, c_stride);
        }
        if (ending.accumulate) {
            write<true>(acc, c, c_stride);
        } else {
            write<false>(acc, c, c_stride);
        }
    }

    static TILEWISE_INLINE void compensate(V (&acc)[rows][vectors], const u32* after_b) {
        TILEWISE_UNROLL
        for (int i = 0; i < rows * vectors; ++i)
            acc[i / vectors][i % vectors] += load<V>(after_b + i % vectors * kLanes);
    }

    template <bool accumulate>
    static TILEWISE_INLINE void write(V (&acc)[rows][vectors], Acc* c, Index c_stride) {
        TILEWISE_UNROLL
        for (int i = 0; i < rows; ++i, walk(c, c_stride)) {
            TILEWISE_UNROLL
            for (int j = 0; j < vectors; ++j) {
                store(c + j * kLanes, accumulate ? acc[i][j] + load<V>(c + j * kLanes) : acc[i][j]);
            }
        }
    }
};

}  // namespace tilewise::cpu
