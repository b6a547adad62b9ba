// SPDX-License-Identifier: MIT
// A product whose rows are read where they lie, through pointers: a row of a convolution is one channel vector for each tap,
// so a table [tap][row] of where these begin (or of zeros, outside the image) replaces any gathering. It holds for all
// groups: their channels are a fixed way further on, also in the zeros. Sums stay in registers over all taps.
// A step of the micro-kernel multiplies rows x vectors as in micro.hpp and reads one pointer a row more. Worth it where
// few columns use what would be gathered: few channels a group.
#pragma once
#include "../product.hpp"
#include "conv_sources.hpp"

namespace tilewise::cpu::blocked_conv {

template <class E, int rows, int vectors>
struct IndirectMicro {
    using Acc = typename E::Acc;
    using V = Vec<Acc>;
    // Two units at a time share a row's pointer, where the registers allow it.
    static constexpr int kUnits = rows * vectors + 2 * vectors + 1 <= 31 ? 2 : 1;

    template <int units>
    static TILEWISE_INLINE void step(V (&acc)[rows][vectors], const char* const* a, Index at, const u32* b,
                                     Index b_stride) {
        U bv[units][vectors];
        TILEWISE_UNROLL
        for (int q = 0; q < units; ++q) {
            TILEWISE_UNROLL
            for (int j = 0; j < vectors; ++j) bv[q][j] = load<U>(b + q * b_stride + j * kLanes);
        }
        TILEWISE_UNROLL
        for (int i = 0; i < rows; ++i) {
            const char* row = a[i] + at;
            TILEWISE_UNROLL
            for (int q = 0; q < units; ++q) {
                u32 unit;
                __builtin_memcpy(&unit, row + q * sizeof(unit), sizeof(unit));
                const U av = splat<U>(unit);
                TILEWISE_UNROLL
                for (int j = 0; j < vectors; ++j) acc[i][j] = E::step(acc[i][j], av, bv[q][j]);
            }
        }
    }

    // c[row][lane] becomes the sums over taps x units, as `ending` says; a[tap * table + row] + at is where a row's units of a
    // tap begin.
    static TILEWISE_NOINLINE void run(const char* const* a, Index table, Index taps, Index at, Index units,
                                      const u32* b, Index b_stride, Acc* c, Index c_stride, const Ending& ending) {
        V acc[rows][vectors] = {};
        for (Index tap = 0; tap < taps; ++tap, a += table) {
            Index u = 0;
            for (; u + kUnits <= units; u += kUnits, b += kUnits * b_stride) {
                step<kUnits>(acc, a, at + u * Index(sizeof(u32)), b, b_stride);
            }
            if (kUnits > 1 && u < units) {
                step<1>(acc, a, at + u * Index(sizeof(u32)), b, b_stride);
                b += b_stride;
            }
        }
        if constexpr (kSame<Acc, float>) {
            if (ending.limited) limit(acc, ending, c_stride);
        }
        TILEWISE_UNROLL
        for (int i = 0; i < rows; ++i, walk(c, c_stride)) {
            TILEWISE_UNROLL
            for (int j = 0; j < vectors; ++j) store(c + j * kLanes, acc[i][j]);
        }
    }
};

// table[tap * stride + i]: where the channels of the i-th position from `first` on begin that it meets with a tap; zeros
// outside.
template <class T, Index stride>
TILEWISE_OUTER void fill_pointers(const char** table, const Walk& walk, const KernelActivation& shape, const void* data,
                                  const char* zeros, Index first, Index count) {
    const auto& [d0, d1, d2] = walk.dim;
    const Index pixel = shape.pixel_stride * kBytes<T>, step = d2.tap_shift * pixel;
    Position at = Position::at(walk, first);
    for (Index i = 0; i < count; ++i, at.next(walk)) {
        const char* image = static_cast<const char*>(data) + at.image * shape.image_stride * kBytes<T>;
        const Index x = at.j[2] * d2.in_step + d2.in_first;
        const TapRange inner = d2.inside(at.j[2]);
        const char** to = table + i;
        for (Index i0 = 0; i0 < d0.taps; ++i0) {
            const Index z = at.j[0] * d0.in_step + d0.in_first + i0 * d0.tap_shift;
            for (Index i1 = 0; i1 < d1.taps; ++i1) {
                const Index y = at.j[1] * d1.in_step + d1.in_first + i1 * d1.tap_shift;
                const bool inside = z >= 0 && z < d0.in_size && y >= 0 && y < d1.in_size;
                const TapRange range = inside ? inner : TapRange{0, 0};
                const char* line = image + ((z * d1.in_size + y) * d2.in_size + x) * pixel;
                for (Index i2 = 0; i2 < d2.taps; ++i2, to += stride) {
                    *to = i2 >= range.begin && i2 < range.end ? line + i2 * step : zeros;
                }
            }
        }
    }
}

// Vector micro-kernels read through pointers. A config for AMX has none, and stands here for one that is never used.
template <class Config>
struct WithoutAmx : Config {
    static constexpr int warp_k = Config::warp_k < kAmxDepth ? Config::warp_k : 1;
};

// Rows of one walk for all groups of a part.
template <class Config>
struct Indirect {
    using P = Product<Config>;
    using Core = VectorCore<WithoutAmx<Config>>;
    using Nest = typename P::Nest;
    using E = typename Core::Engine;
    using Acc = typename E::Acc;
    using A = typename Config::A;
    using Storage = typename A::Storage;
    static constexpr Index kRows = Config::tile_m;

    // Only where memory already holds units, and a tap is a whole number of them.
    static constexpr bool kPossible = Config::warp_k < kAmxDepth && E::template in_place<A> && !E::compensates;
    static TILEWISE_INLINE bool fits(const KernelActivation& shape, Index channels) {
        return kPossible && shape.is_channels_last() && channels % E::depth == 0;
    }

    // Scratch: the table, the sums of a register tile, zeros for all groups.
    static TILEWISE_INLINE Index table_words(Index taps) { return round_up(taps * kRows * 2, kCacheLine); }
    static TILEWISE_INLINE Index tile_words() { return round_up(Index(Config::warp_m) * Config::warp_n, kCacheLine); }
    static TILEWISE_INLINE Index zero_words(Index all_channels) {
        return round_up(all_channels * kBytes<A>, kCacheLine) / Index(sizeof(u32)) + kCacheLine;
    }
    static TILEWISE_INLINE Index scratch_words(Index taps, Index all_channels) {
        return table_words(taps) + tile_words() + zero_words(all_channels);
    }

    using Function = void (*)(const char* const*, Index, Index, Index, Index, const u32*, Index, Acc*, Index,
                              const Ending&);
    template <int r = Core::rows, int v = Core::vectors>
    static TILEWISE_INLINE Function pick(Index count, Index cols) {
        if constexpr (r > 1) {
            if (count != r) return pick<Core::below(r), v>(count, cols);
        }
        if constexpr (v > 1 && r == Core::rows) {
            if (cols <= Core::below(v) * kLanes) return pick<r, Core::below(v)>(count, cols);
        }
        return IndirectMicro<E, r, v>::run;
    }

    // One call computes these: positions [begin, end) of a walk, columns [col_begin, col_end) of each group of the part.
    struct Task {
        const Walk* walk;
        const KernelActivation* shape;
        const void* data;
        Index channels, begin, end, col_begin, col_end;
        Index group_begin, group_end;
        const u32* packed;  // weights: the panel of col_begin of group 0
        Index group_words, panel_words;
        PixelRows rows;  // row 0 is position `begin`
        bool sums_in_c;  // C takes them as they are
    };
    // view_of(group) is the view of C from its first row, column 0 on.
    template <class ViewOf>
    TILEWISE_OUTER static void run(const Task& task, ViewOf view_of, void* scratch) {
        const Index taps = task.walk->taps(), all = task.shape->pixel_stride;
        auto* table = static_cast<const char**>(scratch);
        u32* tile = static_cast<u32*>(scratch) + table_words(taps);
        u32* zeros = tile + tile_words();
        __builtin_memset(zeros, 0, zero_words(all) * sizeof(u32));
        for (Index row = task.begin; row < task.end; row += kRows) {
            const Index rows = least(kRows, task.end - row);
            fill_pointers<A, kRows>(table, *task.walk, *task.shape, task.data, reinterpret_cast<const char*>(zeros),
                                    row, rows);
            for (Index group = task.group_begin; group < task.group_end; ++group) {
                run_rows(task, table, group, row - task.begin, rows, view_of(group), reinterpret_cast<Acc*>(tile));
            }
        }
    }
    static TILEWISE_INLINE void run_rows(const Task& task, const char* const* table, Index group, Index first,
                                         Index rows, const OutView& view, Acc* tile) {
        const Index taps = task.walk->taps(), units = task.channels / E::depth;
        const Index at = group * task.shape->group_stride * kBytes<A>;
        const u32* b = task.packed + group * task.group_words;
        const Index skip = task.col_begin % Nest::kCols;
        const bool limited = !task.sums_in_c && may_limit<typename Config::Out, Acc>(view);
        for (Index col = task.col_begin - skip; col < task.col_end; col += Nest::kCols, b += task.panel_words) {
            const Index low = col < task.col_begin ? skip : 0, high = least(Nest::kCols, task.col_end - col);
            for (Index i = 0; i < rows;) {
                const Index count = Core::piece_rows(rows - i), row = first + i;
                const Function micro = pick(count, high);
                const bool whole = (task.sums_in_c || limited) && low == 0 && high == Nest::kCols;
                const bool one_run = task.rows.run_from(row) >= count;
                if (whole && one_run) {
                    const Index offset = task.rows.offset(row) + col;
                    Acc* c = reinterpret_cast<Acc*>(view.c) + offset;
                    const Ending ending = limited ? limits_of(view, offset, col) : Ending{};
                    micro(table + i, kRows, taps, at, units, b, Nest::kCols, c, view.row_stride, ending);
                } else {
                    if (one_run) view.prefetch_rows(task.rows.offset(row), count, col + low);
                    micro(table + i, kRows, taps, at, units, b, Nest::kCols, tile, Nest::kCols, Ending{});
                    finish_rows(task.rows, view, row, count, col + low, tile + low, high - low);
                }
                i += count;
            }
        }
    }
    static TILEWISE_INLINE void finish_rows(const PixelRows& rows, const OutView& view, Index row, Index count,
                                            Index col, const Acc* sums, Index width) {
        for (Index done = 0; done < count;) {
            const Index run = least(count - done, rows.run_from(row + done));
            view.finish(view, Place{rows.offset(row + done), row + done, col}, sums + done * Nest::kCols, Nest::kCols,
                        run, width);
            done += run;
        }
    }
};

}  // namespace tilewise::cpu::blocked_conv
