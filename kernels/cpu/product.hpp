// SPDX-License-Identifier: MIT
// The products of all operations share these: the micro-kernels that a warp tile asks for, the loop nest around them, and
// the split of k, whose partial sums meet in the workspace. gemm.hpp and conv.hpp say what is multiplied.
#pragma once
#include "amx_core.hpp"
#include "blocked.hpp"

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
struct Product {
    using A = typename Config::A;
    using B = typename Config::B;
    using Tiles = CoreFor<Config, (Config::warp_k >= kAmxDepth)>;
    using Core = typename Tiles::type;
    using Nest = Blocked<Config, Core>;
    using Acc = typename Core::Acc;
    using Raw = typename RawOf<Acc>::type;  // the sums as they are
    static constexpr bool kPackedAhead = Nest::kPackedAhead;
    static_assert(kIsInteger<A> == kIsInteger<B>, "integers multiply integers, floats floats");
    static_assert(!kSame<typename Config::Out, Int32> || kIsInteger<A>, "an int32 output needs int8 operands");

    // Where a part's range of k begins, cut at multiples of tile_k.
    static TILEWISE_INLINE Index k_bound(Index k, int part, int parts) {
        return least(k, ceil_div(k, Nest::kBlockK) * part / parts * Nest::kBlockK);
    }

    // Partial sums go to the workspace like a plain fp32 or int32 product into a row-major C.
    static TILEWISE_INLINE KernelArgs partial_args(const KernelArgs& args, int part) {
        KernelArgs partial = args;
        partial.c = {static_cast<Acc*>(args.workspace) + part * args.batch * args.m * args.n, args.n, 1,
                     args.m * args.n};
        partial.alpha = 1.0f, partial.beta = 0.0f, partial.scale = KernelScale::none, partial.bias = nullptr;
        for (auto& op : partial.epilogue) op = KernelEpilogueOp::none;
        return partial;
    }

    template <class SourceA, class SourceB, class Rows>
    TILEWISE_OUTER static void run_task(Task<SourceA, SourceB, Rows>& task, const KernelArgs& args, bool partial,
                                        void* scratch) {
        KernelArgs later = args;  // between blocks of k, C holds sums to add to
        later.beta = 1.0f;
        task.out_later = task.out, task.out_later.args = &later, task.out_later.finish = finish_sums<Acc>;
        // Integer sums wrap around, but what they make with an old C saturates.
        const bool may_start_from_c = args.beta == 1.0f && !kIsInteger<A>;
        task.sums_in_c = (partial || kSame<typename Config::Out, Raw>)&&is_plain(args) &&
                         (args.beta == 0.0f || may_start_from_c) && task.out.col_stride == 1;
        task.start_from_c = args.beta == 1.0f;
        task.limited = !task.sums_in_c && may_limit<typename Config::Out, Acc>(task.out);
        Nest::run(task, scratch);
    }

    // Adds up the partial sums of columns [begin, end) of a row of the workspace, part 0 first, kReduceCols columns at a
    // time, and finishes them into the view, which starts at that row.
    TILEWISE_OUTER static void add_parts(const KernelArgs& args, Index batch, Index row, Index begin, Index end,
                                         const OutView& out) {
        constexpr Index kReduceCols = 16 * kLanes;
        const Index area = args.m * args.n;
        alignas(kCacheLine) Acc total[kReduceCols];
        for (Index j = begin; j < end; j += kReduceCols) {
            const Index cols = least(kReduceCols, end - j);
            const Acc* sums = static_cast<const Acc*>(args.workspace) + batch * area + row * args.n + j;
            for (Index q = 0; q < cols; q += kLanes) {
                store(total + q, sum_parts(sums + q, args.batch * area, args.split_k, cols - q));
            }
            out.finish(out, out.place(0, j), total, kReduceCols, 1, cols);
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

    // All blocks of k of one panel that is packed ahead: columns from `lane` on, of which `lanes` exist.
    template <class SourceB>
    static TILEWISE_INLINE void pack_panel_ahead(u32* to, const SourceB& source, Index lane, Index lanes, Index k) {
        for (Index done = 0; done < k; done += Nest::kBlockK, to += Nest::block_words()) {
            const Index count = least(Nest::kBlockK, k - done), units = Nest::units_of(count);
            Nest::pack_b_range(to, reinterpret_cast<i32*>(to + units * Nest::kCols), source, lane, lanes, done, 0,
                               count, count, units);
        }
    }
};

}  // namespace tilewise::cpu
