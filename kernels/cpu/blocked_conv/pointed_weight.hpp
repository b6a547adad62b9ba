// SPDX-License-Identifier: MIT
// Backward weight with both activations read where they lie: for each tap, rows x vectors of dw (output channels by input
// channels) are summed up in registers over a block of positions. The table [tap][position] says where the channels of x
// begin that a position meets (or zeros, outside the image); it holds for all groups. dy is packed to units [position][row],
// once for all taps and columns. A step reads `vectors` vectors of x through one pointer (two positions, for pairs of bf16)
// and broadcasts `rows` units of dy. The sums of all groups wait between blocks in C, if it holds sums as they are, else in
// scratch memory: dw is small.
#pragma once
#include "indirect.hpp"

namespace tilewise::cpu::blocked_conv {

template <class E, class T, int rows, int vectors, bool narrow>
struct WeightMicro {
    using Acc = typename E::Acc;
    using V = Vec<Acc>;
    using Raw = Vec<typename T::Storage>;

    // kLanes channels at p; `lanes` of the last vector exist.
    static TILEWISE_INLINE Raw fetch(const char* p, int j, Index lanes) {
        if (narrow && j == vectors - 1) return load_first<Raw>(p, lanes * kBytes<T>);
        return load<Raw>(p);
    }
    static TILEWISE_INLINE U units_of(const char* const* b, Index at, int j, Index lanes) {
        at += j * kLanes * kBytes<T>;
        if constexpr (E::depth == 1) {
            return reinterpret_cast<U>(fetch(b[0] + at, j, lanes));
        } else {
            return widen(fetch(b[0] + at, j, lanes)) | widen(fetch(b[1] + at, j, lanes)) << 16;
        }
    }

    // c[row][lane] = or += the sums over `units` units; b has E::depth pointers for each.
    static TILEWISE_NOINLINE void run(const u32* a, const char* const* b, Index at, Index units, Index lanes, Acc* c,
                                      Index c_stride, bool accumulate) {
        V acc[rows][vectors] = {};
        for (Index u = 0; u < units; ++u, a += rows, b += E::depth) {
            U bv[vectors];
            TILEWISE_UNROLL
            for (int j = 0; j < vectors; ++j) bv[j] = units_of(b, at, j, lanes);
            TILEWISE_UNROLL
            for (int i = 0; i < rows; ++i) {
                const U av = splat<U>(a[i]);
                TILEWISE_UNROLL
                for (int j = 0; j < vectors; ++j) acc[i][j] = E::step(acc[i][j], av, bv[j]);
            }
        }
        TILEWISE_UNROLL
        for (int i = 0; i < rows; ++i, walk(c, c_stride)) {
            TILEWISE_UNROLL
            for (int j = 0; j < vectors; ++j) put(c + j * kLanes, acc[i][j], j, lanes, accumulate);
        }
    }
    static TILEWISE_INLINE void put(Acc* c, V sums, int j, Index lanes, bool accumulate) {
        const bool part = narrow && j == vectors - 1;
        const Index bytes = lanes * Index(sizeof(Acc));
        if (accumulate) sums += part ? load_first<V>(c, bytes) : load<V>(c);
        part ? store_first(c, sums, bytes) : store(c, sums);
    }
};

template <class Config>
struct PointedWeight {
    using Core = VectorCore<WithoutAmx<Config>>;
    using E = typename Core::Engine;
    using Acc = typename E::Acc;
    using A = typename Config::A;
    using B = typename Config::B;
    static constexpr Index kCols = Config::warp_n;
    static constexpr Index kPositions = 1024;  // of a block: its pointers and units stay in the second cache

    static constexpr bool kPossible =
        Config::warp_k < kAmxDepth && E::template in_place<A> && E::template in_place<B> && !E::compensates;
    static TILEWISE_INLINE bool fits(const KernelConv& conv) {
        return kPossible && conv.x.is_channels_last() && conv.y.is_channels_last();
    }

    static TILEWISE_INLINE Index table_words(Index taps) { return round_up(taps * kPositions * 2, kCacheLine); }
    static TILEWISE_INLINE Index unit_words() { return round_up(kPositions * Core::rows + kLanes, kCacheLine); }
    static TILEWISE_INLINE Index zero_words(Index all_channels) {
        return round_up(all_channels * kBytes<B>, kCacheLine) / Index(sizeof(u32)) + kCacheLine;
    }
    // And the sums of all groups, where C does not hold them.
    static TILEWISE_INLINE Index scratch_words(const KernelArgs& args) {
        const KernelConv& conv = args.conv;
        return table_words(conv.filter[0] * conv.filter[1] * conv.filter[2]) + unit_words() +
               zero_words(conv.x.pixel_stride) + args.batch * args.m * args.n;
    }

    using Function = void (*)(const u32*, const char* const*, Index, Index, Index, Acc*, Index, bool);
    template <int r = Core::rows, int v = Core::vectors>
    static TILEWISE_INLINE Function pick(Index count, Index cols) {
        if constexpr (r > 1) {
            if (count != r) return pick<Core::below(r), v>(count, cols);
        }
        if constexpr (v > 1) {
            if (cols <= (v - 1) * kLanes) return pick<r, v - 1>(count, cols);
        }
        return cols < v * kLanes ? WeightMicro<E, B, r, v, true>::run : WeightMicro<E, B, r, v, false>::run;
    }

    struct Sums {
        Acc* data;  // element (group, row, column) is at group * group_stride + row * row_stride + column
        Index group_stride, row_stride;
        bool accumulate;  // on top of what is there, from the first block on
    };
    // Positions [k_begin, k_end), the part's rows and columns.
    TILEWISE_OUTER static void run(const KernelArgs& args, const KernelPart& part, const Walk& walk, Index k_begin,
                                   Index k_end, Sums sums, void* scratch) {
        const KernelConv& conv = args.conv;
        const Index taps = walk.taps();
        auto* table = static_cast<const char**>(scratch);
        u32* units = static_cast<u32*>(scratch) + table_words(taps);
        u32* zeros = units + unit_words();
        __builtin_memset(zeros, 0, zero_words(conv.x.pixel_stride) * sizeof(u32));
        if (k_begin == k_end && !sums.accumulate) clear(args, part, sums);
        for (Index k = k_begin; k < k_end; k += kPositions) {
            const Index count = least(kPositions, k_end - k);
            fill_pointers<B, kPositions>(table, walk, conv.x, args.b.data, reinterpret_cast<const char*>(zeros), k,
                                         count);
            for (Index tap = 0; tap < taps && count % E::depth != 0; ++tap) {
                table[tap * kPositions + count] = reinterpret_cast<const char*>(zeros);  // completes the last unit
            }
            for (Index group = part.batch_begin; group < part.batch_end; ++group) {
                run_block(args, part, table, units, group, k, count, sums);
            }
            sums.accumulate = true;
        }
    }
    TILEWISE_OUTER static void clear(const KernelArgs&, const KernelPart& part, const Sums& sums) {
        for (Index group = part.batch_begin; group < part.batch_end; ++group) {
            for (Index row = part.m_begin; row < part.m_end; ++row) {
                Acc* to = sums.data + group * sums.group_stride + row * sums.row_stride;
                for (Index col = part.n_begin; col < part.n_end; ++col) to[col] = 0;
            }
        }
    }
    TILEWISE_OUTER static void run_block(const KernelArgs& args, const KernelPart& part, const char* const* table,
                                         u32* units, Index group, Index first, Index count, const Sums& sums) {
        const KernelConv& conv = args.conv;
        const auto* dy = static_cast<const typename A::Storage*>(args.a.data);
        const Operand<A> from = {dy + group * conv.y.group_stride + first * conv.y.pixel_stride, 1, conv.y.pixel_stride,
                                 dy + conv.images * conv.y.image_stride};
        const Index at = group * conv.x.group_stride * kBytes<B>;
        for (Index row = part.m_begin; row < part.m_end;) {
            const Index rows = Core::piece_rows(part.m_end - row);
            pack_panel<E, A, true>(units, rows, from.at(row, 0), rows, count, nullptr);
            Acc* to = sums.data + group * sums.group_stride + row * sums.row_stride;
            for (Index begin = part.n_begin; begin < part.n_end;) {
                const Index tap = begin / conv.c, end = least((tap + 1) * conv.c, part.n_end);
                for (Index col = begin; col < end; col += kCols) {
                    const Index cols = least(kCols, end - col), lanes = (cols - 1) % kLanes + 1;
                    pick(rows, cols)(units, table + tap * kPositions, at + (col - tap * conv.c) * kBytes<B>,
                                     ceil_div(count, E::depth), lanes, to + col, sums.row_stride, sums.accumulate);
                }
                begin = end;
            }
            row += rows;
        }
    }
};

}  // namespace tilewise::cpu::blocked_conv
