// SPDX-License-Identifier: MIT
// The GEMM kernel of a config: what a generated stub includes. It reads the argument block, decides which operand feeds
// the rows of the micro-kernels and which the vectors, and hands the rectangle to the blocked loop nest (blocked.hpp)
// or, for warp tiles with one row, to the GEMV kernels (gemv.hpp). Vectors run along the contiguous side of C: for a
// column-major C the transposed product is computed. swap_ab exchanges the sides once more (vectors along m), which
// suits few columns. A packed-ahead B (preshuffle) always feeds the vectors; there, C is turned around tile by tile if
// need be.
#pragma once
#pragma GCC visibility push(hidden)  // kernels for other machines have functions of the same names
#include "../product.hpp"
#include "gemv.hpp"

namespace tilewise::cpu::blocked_gemm {

template <class Config>
struct Gemm {
    using P = Product<Config>;
    using A = typename Config::A;
    using B = typename Config::B;
    using Tiles = typename P::Tiles;
    using Core = typename P::Core;
    using Nest = typename P::Nest;
    using Acc = typename P::Acc;
    using Few = Gemv<typename Core::Engine>;
    static constexpr bool kPackedAhead = Nest::kPackedAhead;
    static constexpr bool kFewRowsOrColumns = Config::warp_m == 1 && !kPackedAhead;
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

    TILEWISE_OUTER static void run_part(const KernelArgs& args, const KernelPart& part, bool partial, void* scratch) {
        if constexpr (kFewRowsOrColumns) return run_few(args, part, partial, scratch);
        const bool swap = !kPackedAhead && Config::swap_ab != (args.c.col_stride != 1);
        const Index m = part.m_end - part.m_begin, n = part.n_end - part.n_begin;
        const Index k_begin = P::k_bound(args.k, part.k_part, args.split_k);
        const Index k_end = P::k_bound(args.k, part.k_part + 1, args.split_k);
        for (Index p = part.batch_begin; p < part.batch_end; ++p) {
            const OutView whole = out_view<typename Config::Out, Acc>(args, p, partial);
            const OutView out = whole.at(part.m_begin, part.n_begin);
            if (swap) {
                Task<Operand<B>, Operand<A>, EvenRows> task = {};
                task.m = n, task.n = m, task.k_begin = k_begin, task.k_end = k_end, task.k_total = args.k;
                task.a = operand_b(args, p).at(part.n_begin, 0), task.b = operand_a(args, p).at(part.m_begin, 0);
                task.out = out.transposed(), task.rows.stride = task.out.row_stride;
                P::run_task(task, args, partial, scratch);
            } else {
                Task<Operand<A>, Operand<B>, EvenRows> task = {};
                task.m = m, task.n = n, task.k_begin = k_begin, task.k_end = k_end, task.k_total = args.k;
                task.a = operand_a(args, p).at(part.m_begin, 0);
                if constexpr (kPackedAhead) {
                    task.packed_b = static_cast<const u32*>(args.b.data) + packed_offset(args, p, part.n_begin) +
                                    k_begin / Nest::kBlockK * Nest::block_words();
                    task.skip = part.n_begin % Nest::kCols;
                } else {
                    task.b = operand_b(args, p).at(part.n_begin, 0);
                }
                task.out = out, task.rows.stride = task.out.row_stride;
                P::run_task(task, args, partial, scratch);
            }
        }
    }

    // The side with fewer elements is the one kept whole; swap_ab makes it B.
    TILEWISE_OUTER static void run_few(const KernelArgs& args, const KernelPart& part, bool partial, void* scratch) {
        const Index m = part.m_end - part.m_begin, n = part.n_end - part.n_begin;
        const Index begin = P::k_bound(args.k, part.k_part, args.split_k);
        const Index k = P::k_bound(args.k, part.k_part + 1, args.split_k) - begin;
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
            const KernelArgs partial = P::partial_args(*args, part->k_part);
            run_part(partial, *part, true, scratch);
        } else {
            run_part(*args, *part, false, scratch);
        }
        Tiles::end();
    }

    TILEWISE_OUTER static Index scratch_bytes(const KernelArgs* args) {
        if (kFewRowsOrColumns) return Few::scratch_words(args->k) * Index(sizeof(u32));
        const Index straight = Nest::template scratch_words<Operand<A>>(args->m, args->n, args->k);
        const Index swapped = Nest::template scratch_words<Operand<B>>(args->n, args->m, args->k);
        return (straight > swapped ? straight : swapped) * Index(sizeof(u32));
    }

    TILEWISE_OUTER static void reduce(const KernelArgs* args, const KernelPart* part) {
        for (Index p = part->batch_begin; p < part->batch_end; ++p) {
            const OutView out = out_view<typename Config::Out, Acc>(*args, p, false);
            for (Index i = part->m_begin; i < part->m_end; ++i) {
                P::add_parts(*args, p, i, part->n_begin, part->n_end, out.at(i, 0));
            }
        }
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
                P::pack_panel_ahead(to, operand_b(*args, p), j, args->n - j, args->k);
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

}  // namespace tilewise::cpu::blocked_gemm
#pragma GCC visibility pop

#define TILEWISE_CPU_BLOCKED_GEMM(Config)                                                               \
    extern "C" __attribute__((visibility("default"))) const tilewise::CpuKernel TILEWISE_KERNEL_SYMBOL; \
    const tilewise::CpuKernel TILEWISE_KERNEL_SYMBOL = tilewise::cpu::blocked_gemm::Gemm<Config>::table();
