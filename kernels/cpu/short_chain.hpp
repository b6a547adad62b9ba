// SPDX-License-Identifier: MIT
// A short chain (out_view.hpp) on a tile of sums, down one column of vectors after the other: reads each sum and D once, the
// bias of a column once, writes C once.
#pragma once
#include "math.hpp"
#include "out_view.hpp"

namespace tilewise::cpu {

TILEWISE_NOINLINE inline void activate_all(KernelEpilogueOp op, F* values, Index count) { activate(op, values, count); }
TILEWISE_NOINLINE inline void activate_all(KernelEpilogueOp op, D* values, Index count) {
    for (Index i = 0; i < count; ++i) {
        F wide = {};
        store(&wide, __builtin_convertvector(values[i], Vec<float, kLanes / 2>));
        activate(op, &wide, 1);
        values[i] = __builtin_convertvector(load<Vec<float, kLanes / 2>>(&wide), D);
    }
}

// Vectors that an activation takes at once, so that its call costs each of them little.
inline constexpr int kActivatedVectors = 8;

// One column of vectors needs this. These are copies, since a write to C might change what is behind a pointer.
template <class V>
struct ShortColumn {
    V bias, low, high;
    KernelEpilogueOp activation;
    char* c;
    const char* d;
    Index row_bytes, lanes;
};

template <class Out, class V, bool whole, bool add, bool activates, class Acc>
TILEWISE_INLINE void finish_column(ShortColumn<V> column, const Acc* sums, Index stride, Index rows) {
    const Index n = whole ? kLanesOf<V> : column.lanes;
    const auto next = [&] {
        V x = read_values<typename RawOf<Acc>::type, V>(sums, n) + column.bias;
        if (add) x += read_values<Out, V>(column.d, n);
        sums += stride, column.d += column.row_bytes;
        return x;
    };
    const auto write = [&](V x) { write_values<Out>(column.c, x, n), column.c += column.row_bytes; };
    if constexpr (!activates) {
        for (Index i = 0; i < rows; ++i) {
            write(limited(next(), column.low, column.high));
        }
    } else {
        V held[kActivatedVectors];
        for (Index i = 0; i < rows; i += kActivatedVectors) {
            const Index count = least<Index>(kActivatedVectors, rows - i);
            for (Index q = 0; q < count; ++q) held[q] = next();
            activate_all(column.activation, held, count);
            for (Index q = 0; q < count; ++q) write(held[q]);
        }
    }
}

template <class Out, class V, bool add, bool activates, class Acc>
TILEWISE_NOINLINE void finish_columns(const OutView& view, Place at, const Acc* sums, Index stride, Index rows,
                                      Index cols) {
    constexpr Index kWidth = kLanesOf<V>;
    const Index offset = view.bytes_to(at);
    const char* bias = view.chain.bias ? view.bias_by_col + at.col * kBytes<Out> : nullptr;
    ShortColumn<V> column = {splat<V>(-0.0f),  // x + -0 is x for every x
                             splat<V>(view.chain.low),
                             splat<V>(view.chain.high),
                             view.chain.activation,
                             view.c + offset,
                             view.d[0] + (add ? offset : 0),
                             view.row_stride * kBytes<Out>,
                             kWidth};
    for (Index j = 0; j < cols; j += kWidth) {
        column.lanes = least(kWidth, cols - j);
        if (bias) column.bias = read_values<Out, V>(bias + j * kBytes<Out>, column.lanes);
        if (column.lanes == kWidth) {
            finish_column<Out, V, true, add, activates>(column, sums + j, stride, rows);
        } else {
            finish_column<Out, V, false, add, activates>(column, sums + j, stride, rows);
        }
        column.c += kWidth * kBytes<Out>, column.d += add ? kWidth * kBytes<Out> : 0;
    }
}

TILEWISE_INLINE bool is_short(const OutView& view) {
    return view.chain.fits && view.col_stride == 1 && !(view.chain.bias && view.bias_by_row);
}

template <class Out, class V, class Acc>
TILEWISE_INLINE void finish_short(const OutView& view, Place at, const Acc* sums, Index stride, Index rows,
                                  Index cols) {
    if (view.chain.activation == KernelEpilogueOp::none) {
        view.chain.add ? finish_columns<Out, V, true, false>(view, at, sums, stride, rows, cols)
                       : finish_columns<Out, V, false, false>(view, at, sums, stride, rows, cols);
    } else {
        view.chain.add ? finish_columns<Out, V, true, true>(view, at, sums, stride, rows, cols)
                       : finish_columns<Out, V, false, true>(view, at, sums, stride, rows, cols);
    }
}

}  // namespace tilewise::cpu
