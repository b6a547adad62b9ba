// SPDX-License-Identifier: MIT
// The end of a product writes C. This is C and all that is indexed like it, the chain that sums go through, and values of C's type
// in lanes of the type that the end computes in.
#pragma once
#include "types.hpp"

namespace tilewise::cpu {

// Most layers end with this, and no more: a bias along the columns, a D tensor that is added, an activation, in this order.
// Limits are an activation of their own, so that relu and relu6 take no call; without either they are infinite.
struct ShortChain {
    bool fits, bias, add;
    KernelEpilogueOp activation;
    float low, high;
};

TILEWISE_OUTER inline ShortChain short_chain(const KernelArgs& args) {
    ShortChain chain = {false, false, false, KernelEpilogueOp::none, -__builtin_inff(), __builtin_inff()};
    const KernelEpilogueOp* op = args.epilogue;
    if (*op == KernelEpilogueOp::bias) chain.bias = true, ++op;
    if (*op == KernelEpilogueOp::add) chain.add = true, ++op;
    if (*op == KernelEpilogueOp::relu || *op == KernelEpilogueOp::relu6) {
        chain.low = 0.0f;
        if (*op++ == KernelEpilogueOp::relu6) chain.high = 6.0f;
    } else if (*op != KernelEpilogueOp::bias && *op != KernelEpilogueOp::add && *op != KernelEpilogueOp::mul) {
        chain.activation = *op;
        if (*op != KernelEpilogueOp::none) ++op;
    }
    chain.fits =
        *op == KernelEpilogueOp::none && args.alpha == 1.0f && args.beta == 0.0f && args.scale == KernelScale::none;
    return chain;
}

// An element: its row, `row_offset` elements away (more than row * row_stride where rows do not follow evenly), and column.
struct Place {
    Index row_offset, row, col;
};

// Can it be done where the sums are made, without a call?
TILEWISE_INLINE bool is_limited(const ShortChain& chain) {
    return chain.fits && chain.activation == KernelEpilogueOp::none;
}

// C and all that is indexed like it, seen from the tile at hand: element (i, j) is at i * row_stride + j * col_stride.
// One of the strides is 1, except where strided pixels of a channels-first tensor are the rows. Pointers are null where there is nothing to read.
struct OutView {
    using Finish = void (*)(const OutView& view, Place at, const void* sums, Index stride, Index rows, Index cols);
    Finish finish;  // makes elements of C from `at` on, of element_bytes each, from sums
    Index element_bytes;
    char* c;
    const char* d[kMaxKernelDTensors];
    Index row_stride, col_stride;
    const char* bias_by_row;
    const char* bias_by_col;
    const float* scale_by_row;  // one value a row
    const float* scale_by_col;
    float factor;  // alpha and the scales that hold for the whole tensor
    ShortChain chain;
    const KernelArgs* args;

    TILEWISE_INLINE OutView at(Index i, Index j) const { return from(place(i, j)); }
    TILEWISE_INLINE Place place(Index i, Index j) const { return {i * row_stride, i, j}; }
    TILEWISE_INLINE Index bytes_to(Place at) const { return (at.row_offset + at.col * col_stride) * element_bytes; }
    // The view from a place on.
    TILEWISE_OUTER OutView from(Place at) const {
        OutView v = *this;
        const Index offset = bytes_to(at);
        v.c += offset;
        for (const char*& d_pointer : v.d) d_pointer += d_pointer ? offset : 0;
        v.bias_by_row += bias_by_row ? at.row * element_bytes : 0;
        v.bias_by_col += bias_by_col ? at.col * element_bytes : 0;
        v.scale_by_row += scale_by_row ? at.row : 0;
        v.scale_by_col += scale_by_col ? at.col : 0;
        return v;
    }
    // Fetches the lines where rows begin, `row_offset` elements away, that will be written once their sums are there, and
    // those of what is added to them.
    TILEWISE_INLINE void prefetch_rows(Index row_offset, Index rows, Index j) const {
        if (col_stride != 1) return;
        const Index offset = (row_offset + j) * element_bytes, row_bytes = row_stride * element_bytes;
        for (Index i = 0; i < rows; ++i) prefetch_for_write(c + offset + i * row_bytes);
        for (Index i = 0; i < rows && chain.add; ++i) prefetch(d[0] + offset + i * row_bytes);
    }
    TILEWISE_INLINE OutView transposed() const {
        OutView v = *this;
        v.row_stride = col_stride, v.col_stride = row_stride;
        v.bias_by_row = bias_by_col, v.bias_by_col = bias_by_row;
        v.scale_by_row = scale_by_col, v.scale_by_col = scale_by_row;
        return v;
    }
};

// Nothing to do but to write the sums (beta aside)?
TILEWISE_INLINE bool is_plain(const KernelArgs& args) {
    return args.alpha == 1.0f && args.scale == KernelScale::none && args.epilogue[0] == KernelEpilogueOp::none;
}

// The type the epilogue computes in: fp32, or fp64 where integers must stay exact.
template <class Out>
struct EpilogueLanes {
    using type = F;
};
template <>
struct EpilogueLanes<Int32> {
    using type = D;
};
template <class Acc>
using RawOf = ConditionalType<kSame<Acc, float>, Fp32, Int32>;  // the sums as an element type

// Values of type T at p as lanes of type V; only the first n are read.
template <class T, class V>
TILEWISE_INLINE V read_values(const void* p, Index n) {
    using Raw = Vec<typename T::Storage, kLanesOf<V>>;
    const Raw raw = n >= kLanesOf<V> ? load<Raw>(p) : load_first<Raw>(p, n * kBytes<T>);
    if constexpr (kSame<T, Int32> || kSame<T, Fp32>) {
        return __builtin_convertvector(raw, V);
    } else {
        return decode<T>(raw);
    }
}

template <class Out, class V>
TILEWISE_INLINE void write_values(char* p, V v, Index n) {
    const auto raw = encode<Out>(v);
    n >= kLanesOf<V> ? store(p, raw) : store_first(p, raw, n * kBytes<Out>);
}

}  // namespace tilewise::cpu
