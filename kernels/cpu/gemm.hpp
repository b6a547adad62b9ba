// SPDX-License-Identifier: MIT
// The GEMM kernel of a config: what a generated stub includes. It reads the argument block, decides which operand feeds
// the rows of the micro-kernels and which the vectors, and hands the rectangle to the blocked loop nest (blocked.hpp)
// or, for warp tiles with one row, to the GEMV kernels (gemv.hpp). Vectors run along the contiguous side of C: for a
// column-major C the transposed product is computed. swap_ab exchanges the sides once more (vectors along m), which
// suits few columns. A packed-ahead B (preshuffle) always feeds the vectors; there, C is turned around tile by tile if
// need be.
#pragma once
#pragma GCC visibility push(hidden)  // kernels for other machines have functions of the same names
#include "amx_core.hpp"
#include "blocked.hpp"
#include "gemv.hpp"

namespace tilewise::cpu {

// Warp tiles with a depth of 32 bf16 or 64 int8 are for AMX, the others for vectors.
template <class Config, bool amx>
struct CoreFor {
    using type = VectorCore<Config>;
    static TILEWISE_INLINE void begin() {}
    static TILEWISE_INLINE void end() {}
    static constexpr int (*enter_thread)() = nullptr;
};
template <class Config>
struct CoreFor<Config, true> {
#if defined(__AMX_TILE__) || defined(__AMXTILE__)
    using type = AmxCore<Config>;
    static TILEWISE_INLINE void begin() { type::begin(); }
    static TILEWISE_INLINE void end() { type::end(); }
    static constexpr int (*enter_thread)() = type::enter_thread;
#else
    static_assert(Config::warp_k < kAmxDepth, "this warp tile needs AMX");
#endif
};

template <class Config>
struct Gemm {
    using A = typename Config::A;
    using B = typename Config::B;
    using Tiles = CoreFor<Config, (Config::warp_k >= kAmxDepth)>;
    using Core = typename Tiles::type;
    using Nest = Blocked<Config, Core>;
    using Acc = typename Core::Acc;
    using Raw = typename RawOf<Acc>::type;  // the sums as they are
    using Few = Gemv<typename Core::Engine>;
    static constexpr bool kPackedAhead = Nest::kPackedAhead;
    static constexpr bool kFewRowsOrColumns = Config::warp_m == 1 && !kPackedAhead;
    static_assert(kIsInteger<A> == kIsInteger<B>, "integers multiply integers, floats floats");
    static_assert(!kSame<typename Config::Out, Int32> || kIsInteger<A>, "an int32 output needs int8 operands");
    static_assert(!(kPackedAhead && Config::swap_ab),
                  "preshuffle packs B for the vector side: swap_ab needs it elsewhere");

    // One past the last element of a rows x cols matrix.
    template <class T>
    static TILEWISE_INLINE const typename T::Storage* end_of(const KernelMatrix& matrix, const typename T::Storage* p,
                                                             Index rows, Index cols) {
        return p + (rows - 1) * matrix.row_stride + (cols - 1) * matrix.col_stride + 1;
    }
    static TILEWISE_INLINE Operand<A> operand_a(const KernelArgs& args, Index batch) {
        const auto* p = static_cast<const typename A::Storage*>(args.a.data) + batch * args.a.batch_stride;
        return {p, args.a.row_stride, args.a.col_stride, end_of<A>(args.a, p, args.m, args.k)};
    }
    static TILEWISE_INLINE Operand<B> operand_b(const KernelArgs& args, Index batch) {
        const auto* p = static_cast<const typename B::Storage*>(args.b.data) + batch * args.b.batch_stride;
        return {p, args.b.col_stride, args.b.row_stride, end_of<B>(args.b, p, args.k, args.n)};
    }

    // The part's range of k, cut at multiples of tile_k.
    static TILEWISE_INLINE Index k_bound(const KernelArgs& args, int part) {
        const Index blocks = ceil_div(args.k, Nest::kBlockK);
        return least(args.k, blocks * part / args.split_k * Nest::kBlockK);
    }

    // Partial sums go to the workspace like a plain fp32 or int32 GEMM into a row-major C.
    static TILEWISE_INLINE KernelArgs partial_args(const KernelArgs& args, int part) {
        KernelArgs partial = args;
        partial.c = {static_cast<Acc*>(args.workspace) + part * args.batch * args.m * args.n, args.n, 1,
                     args.m * args.n};
        partial.alpha = 1.0f, partial.beta = 0.0f, partial.scale = KernelScale::none, partial.bias = nullptr;
        for (auto& op : partial.epilogue) op = KernelEpilogueOp::none;
        for (auto& op : partial.d_ops) op = KernelDOp::none;
        return partial;
    }

    template <class TA, class TB>
    TILEWISE_OUTER static void run_task(Task<TA, TB>& task, const KernelArgs& args, bool partial, void* scratch) {
        KernelArgs later = args;  // between blocks of k, C holds sums to add to
        later.beta = 1.0f;
        task.out_later = task.out, task.out_later.args = &later;
        task.sums_in_c = (partial || kSame<typename Config::Out, Raw>)&&is_plain(args) &&
                         (args.beta == 0.0f || args.beta == 1.0f) && task.out.col_stride == 1;
        task.start_from_c = args.beta == 1.0f;
        Nest::run(task, scratch);
    }

    TILEWISE_OUTER static void run_part(const KernelArgs& args, const KernelPart& part, bool partial, void* scratch) {
        if constexpr (kFewRowsOrColumns) return run_few(args, part, partial, scratch);
        const bool swap = !kPackedAhead && Config::swap_ab != (args.c.col_stride != 1);
        const Index m = part.m_end - part.m_begin, n = part.n_end - part.n_begin;
        const Index k_begin = k_bound(args, part.k_part), k_end = k_bound(args, part.k_part + 1);
        for (Index p = part.batch_begin; p < part.batch_end; ++p) {
            const OutView whole = out_view<typename Config::Out, Acc>(args, p, partial);
            const OutView out = whole.at(part.m_begin, part.n_begin);
            if (swap) {
                Task<B, A> task = {};
                task.m = n, task.n = m, task.k_begin = k_begin, task.k_end = k_end, task.k_total = args.k;
                task.a = operand_b(args, p).at(part.n_begin, 0), task.b = operand_a(args, p).at(part.m_begin, 0);
                task.out = out.transposed();
                run_task(task, args, partial, scratch);
            } else {
                Task<A, B> task = {};
                task.m = m, task.n = n, task.k_begin = k_begin, task.k_end = k_end, task.k_total = args.k;
                task.a = operand_a(args, p).at(part.m_begin, 0);
                if constexpr (kPackedAhead) {
                    task.packed_b = static_cast<const u32*>(args.b.data) + packed_offset(args, p, part.n_begin) +
                                    k_begin / Nest::kBlockK * Nest::block_words();
                    task.skip = part.n_begin % Nest::kCols;
                } else {
                    task.b = operand_b(args, p).at(part.n_begin, 0);
                }
                task.out = out;
                run_task(task, args, partial, scratch);
            }
        }
    }

    // The side with fewer elements is the one kept whole; swap_ab makes it B.
    TILEWISE_OUTER static void run_few(const KernelArgs& args, const KernelPart& part, bool partial, void* scratch) {
        const Index m = part.m_end - part.m_begin, n = part.n_end - part.n_begin;
        const Index begin = k_bound(args, part.k_part), k = k_bound(args, part.k_part + 1) - begin;
        for (Index p = part.batch_begin; p < part.batch_end; ++p) {
            const OutView whole = out_view<typename Config::Out, Acc>(args, p, partial);
            const OutView out = whole.at(part.m_begin, part.n_begin);
            const Operand<A> a = operand_a(args, p).at(part.m_begin, begin);
            const Operand<B> b = operand_b(args, p).at(part.n_begin, begin);
            if (Config::swap_ab || n < m) {
                Few::run(b, a, n, m, k, out.transposed(), scratch);
            } else {
                Few::run(a, b, m, n, k, out, scratch);
            }
        }
    }

    TILEWISE_OUTER static void run(const KernelArgs* args, const KernelPart* part, void* scratch) {
        Tiles::begin();
        if (args->split_k > 1) {
            const KernelArgs partial = partial_args(*args, part->k_part);
            run_part(partial, *part, true, scratch);
        } else {
            run_part(*args, *part, false, scratch);
        }
        Tiles::end();
    }

    TILEWISE_OUTER static Index scratch_bytes(const KernelArgs* args) {
        if (kFewRowsOrColumns) return Few::scratch_words(args->k) * Index(sizeof(u32));
        const Index straight = Nest::scratch_words(args->m, args->n, args->k);
        const Index swapped = Nest::scratch_words(args->n, args->m, args->k);
        return (straight > swapped ? straight : swapped) * Index(sizeof(u32));
    }

    // Adds up the partial sums of the rectangle, part 0 first, kReduceCols columns of a row at a time.
    TILEWISE_OUTER static void reduce(const KernelArgs* args, const KernelPart* part) {
        constexpr Index kReduceCols = 16 * kLanes;
        const Index area = args->m * args->n;
        alignas(kCacheLine) Acc total[kReduceCols];
        for (Index p = part->batch_begin; p < part->batch_end; ++p) {
            const OutView out = out_view<typename Config::Out, Acc>(*args, p, false);
            for (Index i = part->m_begin; i < part->m_end; ++i) {
                for (Index j = part->n_begin; j < part->n_end; j += kReduceCols) {
                    const Index cols = least(kReduceCols, part->n_end - j);
                    const Acc* sums = static_cast<const Acc*>(args->workspace) + p * area + i * args->n + j;
                    for (Index q = 0; q < cols; q += kLanes) {
                        store(total + q, sum_parts(sums + q, args->batch * area, args->split_k, cols - q));
                    }
                    out.finish(out.at(i, j), total, kReduceCols, 1, cols);
                }
            }
        }
    }
    static TILEWISE_INLINE Vec<Acc> sum_parts(const Acc* sums, Index stride, int parts, Index valid) {
        Vec<Acc> total = {};
        for (int s = 0; s < parts; ++s) {
            total += valid >= kLanes ? load<Vec<Acc>>(sums + s * stride)
                                     : load_first<Vec<Acc>>(sums + s * stride, valid * Index(sizeof(Acc)));
        }
        return total;
    }

    // Packed ahead: [batch][panel of warp_n columns][k block of tile_k][units]; one entry serves all of the batch if
    // b's batch stride is 0.
    static TILEWISE_INLINE Index packed_entry_words(const KernelArgs& args) {
        return ceil_div(args.n, Nest::kCols) * Nest::panel_words(args.k);
    }
    static TILEWISE_INLINE Index packed_offset(const KernelArgs& args, Index batch, Index col) {
        const Index entry = args.b.batch_stride == 0 ? 0 : batch;
        return entry * packed_entry_words(args) + col / Nest::kCols * Nest::panel_words(args.k);
    }
    static Index packed_b_bytes(const KernelArgs* args) {
        const Index entries = args->b.batch_stride == 0 ? 1 : args->batch;
        return entries * packed_entry_words(*args) * Index(sizeof(u32));
    }
    // Every panel is packed by the part that holds its first column.
    TILEWISE_OUTER static void pack_b(const KernelArgs* args, const KernelPart* part, void* packed) {
        for (Index p = part->batch_begin; p < part->batch_end; ++p) {
            if (args->b.batch_stride == 0 && p > 0) break;
            for (Index j = round_up(part->n_begin, Nest::kCols); j < part->n_end; j += Nest::kCols) {
                u32* to = static_cast<u32*>(packed) + packed_offset(*args, p, j);
                for (Index k = 0; k < args->k; k += Nest::kBlockK, to += Nest::block_words()) {
                    const Index count = least(Nest::kBlockK, args->k - k), units = Nest::units_of(count);
                    Nest::pack_b_piece(to, reinterpret_cast<i32*>(to + units * Nest::kCols),
                                       operand_b(*args, p).at(j, k), args->n - j, 0, count, count, units);
                }
            }
        }
    }

    static constexpr CpuKernel table() {
        return {kKernelAbi,
                scratch_bytes,
                run,
                reduce,
                kPackedAhead ? packed_b_bytes : nullptr,
                kPackedAhead ? pack_b : nullptr,
                Tiles::enter_thread};
    }
};

}  // namespace tilewise::cpu
#pragma GCC visibility pop

#define TILEWISE_CPU_GEMM(Config)                                                                       \
    extern "C" __attribute__((visibility("default"))) const tilewise::CpuKernel TILEWISE_KERNEL_SYMBOL; \
    const tilewise::CpuKernel TILEWISE_KERNEL_SYMBOL = tilewise::cpu::Gemm<Config>::table();
