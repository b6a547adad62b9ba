// SPDX-License-Identifier: MIT
// The end of a GEMM: a tile of raw sums (fp32 or int32, rows x cols, `stride` apart) becomes elements of C:
//   c = ops(alpha * scale_a * scale_b * sum + beta * c)
// The vectors run along the contiguous side of C. What depends on the row is a number per row, what depends on the
// column a vector per column group; a view with its rows and columns exchanged (bias along rows, scales swapped) is the
// same code. Reads each sum, C (only if beta != 0), D and bias once; writes C once. Integer outputs are computed in
// fp64: exact.
#pragma once
#include "short_chain.hpp"

namespace tilewise::cpu {

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
    if (is_short(given)) return finish_short<Out, V>(given, Place{}, sums, stride, rows, cols);
    const OutView view = given;  // copies: what is written to C cannot change them
    const float beta = given.args->beta;
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
TILEWISE_OUTER void finish(const OutView& whole, Place at, const void* from, Index stride, Index rows, Index cols) {
    const Acc* sums = static_cast<const Acc*>(from);
    using V = typename EpilogueLanes<Out>::type;
    if (is_short(whole)) return finish_short<Out, V>(whole, at, sums, stride, rows, cols);
    const OutView view = whole.from(at);
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
TILEWISE_OUTER void finish_sums(const OutView& view, Place at, const void* from, Index stride, Index rows, Index cols) {
    using V = Vec<Acc>;
    const bool add = view.args->beta != 0.0f;
    const Index step = view.col_stride == 1 ? kLanes : 1;  // a view that is turned around has its rows apart
    for (Index i = 0; i < rows; ++i) {
        for (Index j = 0; j < cols; j += step) {
            const Index bytes = least(step, cols - j) * Index(sizeof(Acc));
            Acc* to = reinterpret_cast<Acc*>(view.c + view.bytes_to(at)) + i * view.row_stride + j * view.col_stride;
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
    v.chain = short_chain(args);
    v.args = &args;
    return v;
}

}  // namespace tilewise::cpu
