// SPDX-License-Identifier: MIT
// The end of a GEMM: a tile of raw sums (fp32 or int32, rows x cols, `stride` apart) becomes elements of C:
//   c = ops(alpha * scale_a * scale_b * sum + beta * c)
// The vectors run along the contiguous side of C. What depends on the row is a number per row, what depends on the
// column a vector per column group; a view with its rows and columns exchanged (bias along rows, scales swapped) is the
// same code. Reads each sum, C (only if beta != 0), D and bias once; writes C once. Integer outputs are computed in
// fp64: exact.
#pragma once
#include "math.hpp"

namespace tilewise::cpu {

// C and all that is indexed like it, seen from the tile at hand: element (i, j) is at i * row_stride + j * col_stride.
// One of the strides is 1, except where strided pixels of a channels-first tensor are the rows. Pointers are null where there is nothing to read.
struct OutView {
    using Finish = void (*)(const OutView& view, const void* sums, Index stride, Index rows, Index cols);
    Finish finish;  // makes elements of C, of element_bytes each, from sums
    Index element_bytes;
    char* c;
    const char* d[kMaxKernelDTensors];
    Index row_stride, col_stride;
    const char* bias_by_row;
    const char* bias_by_col;
    const float* scale_by_row;  // one value a row
    const float* scale_by_col;
    float factor;  // alpha and the scales that hold for the whole tensor
    const KernelArgs* args;

    // The view from element (i, j) on.
    TILEWISE_INLINE OutView at(Index i, Index j) const { return moved(i * row_stride, i, j); }
    // The same where row i does not follow from the strides, but is `row_offset` elements away.
    TILEWISE_OUTER OutView moved(Index row_offset, Index i, Index j) const {
        OutView v = *this;
        const Index offset = (row_offset + j * col_stride) * element_bytes;
        v.c += offset;
        for (const char*& d_pointer : v.d) d_pointer += d_pointer ? offset : 0;
        v.bias_by_row += bias_by_row ? i * element_bytes : 0;
        v.bias_by_col += bias_by_col ? j * element_bytes : 0;
        v.scale_by_row += scale_by_row ? i : 0;
        v.scale_by_col += scale_by_col ? j : 0;
        return v;
    }
    // Fetches the lines where rows begin, `row_offset` elements away, that will be written once their sums are there.
    TILEWISE_INLINE void prefetch_rows(Index row_offset, Index rows, Index j) const {
        if (col_stride != 1) return;
        const char* row = c + (row_offset + j) * element_bytes;
        for (Index i = 0; i < rows; ++i, row += row_stride * element_bytes) prefetch_for_write(row);
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

TILEWISE_NOINLINE inline void activate_all(KernelEpilogueOp op, F* values, Index count) { activate(op, values, count); }
TILEWISE_NOINLINE inline void activate_all(KernelEpilogueOp op, D* values, Index count) {
    for (Index i = 0; i < count; ++i) {
        F wide = {};
        store(&wide, __builtin_convertvector(values[i], Vec<float, kLanes / 2>));
        activate(op, &wide, 1);
        values[i] = __builtin_convertvector(load<Vec<float, kLanes / 2>>(&wide), D);
    }
}

// Vectors that go through a chain together, in registers: each operation is looked up once for all of them.
inline constexpr int kChainVectors = 4;

// How far apart the vectors of such a group are: one below the other, or one behind the other.
struct GroupSteps {
    Index sums, elements, row, col;  // elements: of C and D
};

// `count` vectors from row i, column j on; only the first `lanes` lanes of each, or all where `whole`.
template <class Out, class V, int count, bool whole, class Acc>
TILEWISE_INLINE void finish_group(const OutView& view, const KernelEpilogueOp* ops, float beta, const Acc* sums,
                                  GroupSteps step, Index i, Index j, Index lanes) {
    const Index n = whole ? kLanesOf<V> : lanes, at = (i * view.row_stride + j) * kBytes<Out>;
    const Index next = step.elements * kBytes<Out>;
    V v[count];
    const auto each = [&](auto change) {
        TILEWISE_UNROLL
        for (int q = 0; q < count; ++q) change(v[q], q);
    };
    each([&](V& x, int q) { x = read_values<typename RawOf<Acc>::type, V>(sums + q * step.sums, n) * view.factor; });
    if (view.scale_by_row) each([&](V& x, int q) { x *= view.scale_by_row[i + q * step.row]; });
    if (view.scale_by_col) {
        each([&](V& x, int q) { x *= read_values<Fp32, V>(view.scale_by_col + j + q * step.col, n); });
    }
    if (beta != 0.0f) each([&](V& x, int q) { x += beta * read_values<Out, V>(view.c + at + q * next, n); });
    const char* const* next_d = view.d;
    for (; *ops != KernelEpilogueOp::none; ++ops) {
        if (*ops == KernelEpilogueOp::bias && view.bias_by_col) {
            const char* bias = view.bias_by_col + j * kBytes<Out>;
            each([&](V& x, int q) { x += read_values<Out, V>(bias + q * step.col * kBytes<Out>, n); });
        } else if (*ops == KernelEpilogueOp::bias) {
            const char* bias = view.bias_by_row + i * kBytes<Out>;
            each([&](V& x, int q) { x += splat<V>(read_values<Out, V>(bias + q * step.row * kBytes<Out>, 1)[0]); });
        } else if (*ops == KernelEpilogueOp::relu) {
            each([](V& x, int) { x = select(x < 0, V{}, x); });
        } else if (*ops == KernelEpilogueOp::add) {
            const char* d = *next_d++ + at;
            each([&](V& x, int q) { x += read_values<Out, V>(d + q * next, n); });
        } else if (*ops == KernelEpilogueOp::mul) {
            const char* d = *next_d++ + at;
            each([&](V& x, int q) { x *= read_values<Out, V>(d + q * next, n); });
        } else {
            V held[count];  // a copy: the others stay in registers
            each([&](V& x, int q) { held[q] = x; });
            activate_all(*ops, held, count);
            each([&](V& x, int q) { x = held[q]; });
        }
    }
    each([&](V& x, int q) { write_values<Out>(view.c + at + q * next, x, n); });
}

// Nothing but the conversion.
template <class Out, class V, class Acc>
TILEWISE_INLINE void convert_rows(const OutView& view, const Acc* sums, Index stride, Index rows, Index cols) {
    using Raw = typename RawOf<Acc>::type;
    for (Index i = 0; i < rows; ++i) {
        char* c = view.c + i * view.row_stride * kBytes<Out>;
        for (Index j = 0; j < cols; j += kLanesOf<V>) {
            write_values<Out>(c + j * kBytes<Out>, read_values<Raw, V>(sums + i * stride + j, cols - j), cols - j);
        }
    }
}

// `vectors` vectors from (i, j) on, in groups.
template <class Out, class V, bool whole, class Acc>
TILEWISE_INLINE void finish_groups(const OutView& view, const KernelEpilogueOp* ops, float beta, const Acc* sums,
                                   GroupSteps step, Index i, Index j, Index vectors, Index lanes) {
    Index q = 0;
    for (; q + kChainVectors <= vectors; q += kChainVectors) {
        finish_group<Out, V, kChainVectors, whole>(view, ops, beta, sums + q * step.sums, step, i + q * step.row,
                                                   j + q * step.col, lanes);
    }
    for (; q < vectors; ++q) {
        finish_group<Out, V, 1, whole>(view, ops, beta, sums + q * step.sums, step, i + q * step.row, j + q * step.col,
                                       lanes);
    }
}

// A tile whose view has col_stride 1. The groups of a few rows lie along them; those of many rows are columns of vectors,
// which need the bias and the scales of one vector only.
template <class Out, class Acc>
TILEWISE_NOINLINE void finish_rows(const OutView& given, const Acc* sums, Index stride, Index rows, Index cols) {
    using V = typename EpilogueLanes<Out>::type;
    const OutView view = given;  // copies: what is written to C cannot change them
    const float beta = given.args->beta;
    if (is_plain(*given.args) && beta == 0.0f) return convert_rows<Out, V>(view, sums, stride, rows, cols);
    KernelEpilogueOp ops[kMaxKernelEpilogueOps + 1] = {};
    __builtin_memcpy(ops, given.args->epilogue, sizeof(given.args->epilogue));
    constexpr Index kWidth = kLanesOf<V>;
    const Index vectors = cols / kWidth, whole = vectors * kWidth;
    const GroupSteps down = {stride, view.row_stride, 1, 0}, along = {kWidth, kWidth, 0, kWidth};
    if (rows < kChainVectors) {
        for (Index i = 0; i < rows; ++i) {
            finish_groups<Out, V, true>(view, ops, beta, sums + i * stride, along, i, 0, vectors, kWidth);
        }
    } else {
        for (Index j = 0; j < whole; j += kWidth) {
            finish_groups<Out, V, true>(view, ops, beta, sums + j, down, 0, j, rows, kWidth);
        }
    }
    if (whole < cols) {
        finish_groups<Out, V, false>(view, ops, beta, sums + whole, down, 0, whole, rows, cols - whole);
    }
}

inline constexpr int kTransposeRows = 64;  // columns of a tile turned around at a time

// A tile of sums into C. A view without neighbouring columns gets the tile turned around first, a few rows at a time, and
// one row at a time where rows are no neighbours either.
template <class Out, class Acc>
TILEWISE_OUTER void finish(const OutView& view, const void* from, Index stride, Index rows, Index cols) {
    const Acc* sums = static_cast<const Acc*>(from);
    if (view.col_stride == 1) return finish_rows<Out>(view, sums, stride, rows, cols);
    alignas(kCacheLine) Acc turned[kLanes * kTransposeRows];
    for (Index i = 0; i < rows; i += kTransposeRows) {
        for (Index j = 0; j < cols; j += kLanes) {
            const Index height = least<Index>(kTransposeRows, rows - i), width = least<Index>(kLanes, cols - j);
            for (Index r = 0; r < height; ++r) {
                for (Index c = 0; c < width; ++c) turned[c * kTransposeRows + r] = sums[(i + r) * stride + j + c];
            }
            const Index run = view.row_stride == 1 ? height : 1;
            for (Index r = 0; r < height; r += run) {
                finish_rows<Out>(view.at(i + r, j).transposed(), turned + r, kTransposeRows, width, run);
            }
        }
    }
}

// Sums as they are, into rows of sums: the first block of k writes them (beta is 0), a later one adds its own to them.
// Those of integers wrap around, as within a block.
template <class Acc>
TILEWISE_OUTER void finish_sums(const OutView& view, const void* from, Index stride, Index rows, Index cols) {
    using V = Vec<Acc>;
    const bool add = view.args->beta != 0.0f;
    const Index step = view.col_stride == 1 ? kLanes : 1;  // a view that is turned around has its rows apart
    for (Index i = 0; i < rows; ++i) {
        for (Index j = 0; j < cols; j += step) {
            const Index bytes = least(step, cols - j) * Index(sizeof(Acc));
            Acc* to = reinterpret_cast<Acc*>(view.c) + i * view.row_stride + j * view.col_stride;
            V sums = load_first<V>(static_cast<const Acc*>(from) + i * stride + j, bytes);
            if (add) sums += load_first<V>(to, bytes);
            store_first(to, sums, bytes);
        }
    }
}

// The whole C of one batch entry, as the problem states it.
template <class Out, class Acc>
TILEWISE_OUTER OutView out_view(const KernelArgs& args, Index batch, bool partial) {
    OutView v = {};
    v.finish = partial ? finish_sums<Acc> : finish<Out, Acc>;
    v.element_bytes = partial ? Index(sizeof(Acc)) : kBytes<Out>;
    const Index offset = batch * args.c.batch_stride * v.element_bytes;
    v.c = static_cast<char*>(args.c.data) + offset;
    for (int i = 0; i < kMaxKernelDTensors; ++i) {
        v.d[i] = args.d[i] ? static_cast<const char*>(args.d[i]) + offset : nullptr;
    }
    v.row_stride = args.c.row_stride, v.col_stride = args.c.col_stride;
    v.bias_by_col = static_cast<const char*>(args.bias);
    v.factor = args.alpha;
    if (args.scale == KernelScale::tensor) v.factor *= args.scale_a[0] * args.scale_b[0];
    if (args.scale == KernelScale::row) v.scale_by_row = args.scale_a, v.scale_by_col = args.scale_b;
    v.args = &args;
    return v;
}

}  // namespace tilewise::cpu
