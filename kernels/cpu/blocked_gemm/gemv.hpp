// SPDX-License-Identifier: MIT
// GEMM with few rows or few columns, bound by reading the large operand: it is read in place, once for every kFewRows
// rows of the small one. The small operand X (rows) is packed to units whole; the large one Y (columns) is converted in
// registers. Two ways, by the way Y lies in memory:
//   columns contiguous  a chunk of rows of Y at a time is added up into the sums, vectors along the columns; the sums
//                       (rows x kSumCols) stay in L1 or L2, Y streams through
//   k contiguous        dot products, vectors along k, several columns at once, added across the lanes at the end
// Up to 8 rows share each vector of Y. An engine that compensates gets one more row of X, all 128: its sums are
// subtracted at the end. Which side is the small one is decided by the sizes; tiles only cut k for split-k.
#pragma once
#include "../epilogue.hpp"
#include "../pack.hpp"

namespace tilewise::cpu::blocked_gemm {

inline constexpr Index kFewRows = 16;                               // rows of X handled in one pass over Y
inline constexpr Index kSumCols = 4096;                             // columns whose sums are kept
inline constexpr int kGemvRegisters = kVectorBytes == 64 ? 24 : 8;  // sums held in registers
inline constexpr Index kPrefetchBytes = 1024;                       // along a row of Y

// Vectors (or columns) that share the registers with r rows.
constexpr int gemv_width(int r) { return kGemvRegisters / r > 8 ? 8 : kGemvRegisters / r; }

template <class E>
struct Gemv {
    using Acc = typename E::Acc;
    using V = Vec<Acc>;
    static constexpr Index kExtra = E::compensates ? 1 : 0;
    static constexpr Index kMostRows = kFewRows + kExtra;
    static constexpr Index kStep = kLanes * E::depth;  // k in one vector of units
    // Rows of Y added up in one pass over the columns: as many as the prefetchers follow, more if Y is in a cache.
    static constexpr Index kStreamedRows = 16, kCachedRows = 64, kCachedBytes = 8 << 20;

    // X in units, both ways round, and the sums.
    struct Store {
        u32* by_k;    // [unit][row]
        u32* by_row;  // [row][unit], rows x_stride apart, ending in zeros
        Acc* sums;    // [row][kSumCols]
        Index rows, units, x_stride;
    };
    static TILEWISE_INLINE Index padded_units(Index k) { return round_up(ceil_div(k, E::depth), kLanes); }
    static TILEWISE_INLINE Index scratch_words(Index k) {
        return kMostRows * (2 * padded_units(k) + kSumCols) + 2 * kLanes;
    }

    template <class T>
    TILEWISE_OUTER static void pack_x(Store& x, Operand<T> from, Index rows, Index k, bool by_row) {
        x.rows = rows + kExtra, x.units = ceil_div(k, E::depth);
        pack_panel<E, T, true>(x.by_k, x.rows, from, rows, k, nullptr);
        if constexpr (E::compensates) {
            for (Index unit = 0; unit < x.units; ++unit) x.by_k[unit * x.rows + rows] = E::offset_a;
        }
        if (!by_row) return;
        __builtin_memset(x.by_row, 0, x.rows * x.x_stride * sizeof(u32));
        for (Index row = 0; row < x.rows; ++row) {
            for (Index unit = 0; unit < x.units; ++unit) {
                x.by_row[row * x.x_stride + unit] = x.by_k[unit * x.rows + row];
            }
        }
    }

    // sums[row][column] += the products of `units` units; r rows, w vectors of columns.
    template <class T, int r, int w, bool whole>
    static TILEWISE_NOINLINE void add_rows(const u32* x, Index x_stride, const typename T::Storage* y, Index k_stride,
                                           Edge<T> edge, Index units, Acc* sums) {
        V acc[r][w];
        TILEWISE_UNROLL
        for (int i = 0; i < r * w; ++i) acc[i / w][i % w] = load<V>(sums + i / w * kSumCols + i % w * kLanes);
        for (Index unit = 0; unit < units; ++unit) {
            U yv[w];
            TILEWISE_UNROLL
            for (int j = 0; j < w; ++j) {
                yv[j] = E::template along_lanes<T, false>(y + j * kLanes, k_stride, whole ? nullptr : &edge);
            }
            TILEWISE_UNROLL
            for (int i = 0; i < r; ++i) {
                TILEWISE_UNROLL
                for (int j = 0; j < w; ++j) acc[i][j] = E::step(acc[i][j], splat<U>(x[i]), yv[j]);
            }
            x += x_stride, y += E::depth * k_stride, edge.k_left -= E::depth;
        }
        TILEWISE_UNROLL
        for (int i = 0; i < r * w; ++i) store(sums + i / w * kSumCols + i % w * kLanes, acc[i / w][i % w]);
    }

    // One row and one vector of columns, at the end of the columns or of k.
    template <class T>
    static TILEWISE_INLINE void add_edge(const Store& x, Index row, Operand<T> y, Index begin, Index units, Index k,
                                         Index col, Index cols) {
        const Edge<T> edge = {k - begin * E::depth, cols - col, y.limit};
        add_rows<T, 1, 1, false>(x.by_k + begin * x.rows + row, x.rows, y.at(col, begin * E::depth).p, y.k_stride, edge,
                                 units, x.sums + row * kSumCols + col);
    }

    // All rows from `row` on, in groups of 8, 4, 2 and 1, times one chunk of k.
    template <class T, int r = 8>
    static TILEWISE_INLINE void add_chunk(const Store& x, Index row, Operand<T> y, Index begin, Index k, Index cols,
                                          Index chunk) {
        constexpr int w = gemv_width(r), width = w * kLanes;
        const Index units = least(chunk, k / E::depth - begin), whole = cols / width * width;
        for (; x.rows - row >= r; row += r) {
            const u32* xp = x.by_k + begin * x.rows + row;
            for (Index j = 0; j < whole; j += width) {
                add_rows<T, r, w, true>(xp, x.rows, y.at(j, begin * E::depth).p, y.k_stride, {}, units,
                                        x.sums + row * kSumCols + j);
            }
            for (Index j = whole; j < cols; j += kLanes) {
                for (Index i = row; i < row + r; ++i) add_edge(x, i, y, begin, units, k, j, cols);
            }
        }
        if constexpr (r > 1) add_chunk<T, r / 2>(x, row, y, begin, k, cols, chunk);
    }

    template <class T, int r, int c>
    static TILEWISE_INLINE void dot_step(V (&acc)[r][c], const u32* x, Index x_stride,
                                         const typename T::Storage* const (&y)[c], Index k) {
        U yv[c];
        TILEWISE_UNROLL
        for (int j = 0; j < c; ++j) yv[j] = E::template along_k<T, false>(y[j] + k);
        TILEWISE_UNROLL
        for (int i = 0; i < r; ++i) {
            const U xv = load<U>(x + i * x_stride + k / E::depth);
            TILEWISE_UNROLL
            for (int j = 0; j < c; ++j) acc[i][j] = E::step(acc[i][j], xv, yv[j]);
        }
    }

    // sums[row][column] = the dot products of r rows and c columns.
    template <class T, int r, int c>
    static TILEWISE_NOINLINE void dots(const u32* x, Index x_stride, Operand<T> from, Index k, Acc* sums) {
        V acc[r][c] = {};
        const typename T::Storage* y[c];
        TILEWISE_UNROLL
        for (int j = 0; j < c; ++j) y[j] = from.p + j * from.lane_stride;
        Index done = 0;
        for (; k - done >= kStep; done += kStep) dot_step<T, r, c>(acc, x, x_stride, y, done);
        if (done < k) {  // the last k, fewer than a vector, from copies that end in zeros
            alignas(kCacheLine) typename T::Storage rest[c][kStep] = {};
            for (int j = 0; j < c; ++j) {
                __builtin_memcpy(rest[j], y[j] + done, (k - done) * sizeof(rest[0][0]));
                y[j] = rest[j];
            }
            dot_step<T, r, c>(acc, x + done / E::depth, x_stride, y, 0);
        }
        TILEWISE_UNROLL
        for (int i = 0; i < r; ++i) {
            TILEWISE_UNROLL
            for (int j = 0; j < c; ++j) sums[i * kSumCols + j] = sum_lanes<Acc>(acc[i][j]);
        }
    }

    template <class T, int r = 8>
    static TILEWISE_INLINE void dot_columns(const Store& x, Index row, Operand<T> y, Index k, Index cols, Acc* sums) {
        constexpr int c = gemv_width(r);
        for (; x.rows - row >= r; row += r) {
            const u32* xp = x.by_row + row * x.x_stride;
            Index j = 0;
            for (; cols - j >= c; j += c) dots<T, r, c>(xp, x.x_stride, y.at(j, 0), k, sums + row * kSumCols + j);
            for (; j < cols; ++j) {
                for (Index i = 0; i < r; ++i) {
                    dots<T, 1, 1>(xp + i * x.x_stride, x.x_stride, y.at(j, 0), k, sums + (row + i) * kSumCols + j);
                }
            }
        }
        if constexpr (r > 1) dot_columns<T, r / 2>(x, row, y, k, cols, sums);
    }

    // rows x cols of the view; both operands start at the range of k.
    template <class TX, class TY>
    TILEWISE_OUTER static void run(Operand<TX> x_from, Operand<TY> y_from, Index rows, Index cols, Index k,
                                   const OutView& out, void* scratch) {
        constexpr Index kGroup = 24;  // columns that all rows use before the next ones: a multiple of every width
        Store x = {};
        x.x_stride = padded_units(k);
        x.by_k = static_cast<u32*>(scratch);
        x.by_row = x.by_k + kMostRows * x.x_stride + kLanes;
        x.sums = reinterpret_cast<Acc*>(x.by_row + kMostRows * x.x_stride + kLanes);
        const bool cached = cols * k * kBytes<TY> <= kCachedBytes;
        const Index chunk = (cached ? kCachedRows : kStreamedRows) / E::depth;
        const bool by_columns = y_from.lane_stride == 1 && (y_from.k_stride != 1 || k == 1);
        for (Index row = 0; row < rows; row += kFewRows) {
            const Index count = least(kFewRows, rows - row);
            pack_x(x, x_from.at(row, 0), count, k, !by_columns);
            for (Index col = 0; col < cols; col += kSumCols) {
                const Index width = least(kSumCols, cols - col);
                const Operand<TY> y = y_from.at(col, 0);
                if (by_columns) {
                    __builtin_memset(x.sums, 0, x.rows * kSumCols * sizeof(Acc));
                    const Index full = k / E::depth;  // a last unit may be short of k
                    for (Index unit = 0; unit < full; unit += chunk) add_chunk(x, 0, y, unit, k, width, chunk);
                    for (Index i = 0; i < x.rows && full < x.units; ++i) {
                        for (Index j = 0; j < width; j += kLanes) add_edge(x, i, y, full, 1, k, j, width);
                    }
                } else {
                    for (Index j = 0; j < width; j += kGroup) {
                        dot_columns(x, 0, y.at(j, 0), k, least(kGroup, width - j), x.sums + j);
                    }
                }
                if constexpr (E::compensates) subtract_extra(x.sums, count, width);
                out.finish(out, out.place(row, col), x.sums, kSumCols, count, width);
            }
        }
    }
    static TILEWISE_INLINE void subtract_extra(Acc* sums, Index rows, Index cols) {
        for (Index i = 0; i < rows; ++i) {
            for (Index j = 0; j < cols; ++j) sums[i * kSumCols + j] -= sums[rows * kSumCols + j];
        }
    }
};

}  // namespace tilewise::cpu::blocked_gemm
