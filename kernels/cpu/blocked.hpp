// SPDX-License-Identifier: MIT
// The loop nest around the micro-kernels, for one rectangle of C and one range of k:
//   for n in tile_n: for m in tile_m: for k in tile_k:            cache blocks
//     pack A (tile_m x tile_k, for L2)
//     for panels of B, wave_n at a time: pack them (tile_k x warp_n each, for L1)
//       for rows of micro-tiles, wave_m at a time: micro-kernel    warp_m x warp_n sums in registers
// The sums of a micro-tile wait between blocks of k in C itself, if C holds sums as they are (fp32 or int32 and nothing
// else to do), else in a scratch tile of tile_m x tile_n; the epilogue follows the last block of k while the tile is
// hot. B's packed panels are kept for all of k when there are further rows of blocks to use them and they fit
// kKeepBytes; else they are packed at every use, into a ring of 2 * wave_n panels. A is packed once for every tile_n
// columns of C.
#pragma once
#include "epilogue.hpp"
#include "vector_core.hpp"

namespace tilewise::cpu {

// basic_v1    nothing is packed: A is read in place, B too if n is contiguous. What has to be converted, interleaved or
//             turned around, and the last panel of B when it is narrow, is packed after all.
// mem         B is packed, A is read in place where its type needs no conversion.
// compv3      A and B are packed.
// compv4      as compv3, and the next panels of B are packed in slices between the micro-kernels of the current ones.
// preshuffle  B was packed ahead by pack_b, once, and is reused by every run; A is packed, unless it is gathered.
enum class Pipeline { basic_v1, mem, compv3, compv4, preshuffle };

inline constexpr Index kKeepBytes = 64 << 20;  // most memory for packed panels of B over all of k

// Can a register tile with all of k write C itself, after the chain?
template <class Out, class Acc>
TILEWISE_INLINE bool may_limit(const OutView& out) {
    return kSame<Out, Fp32> && kSame<Acc, float> && is_short(out) && is_limited(out.chain);
}
TILEWISE_INLINE Ending limits_of(const OutView& out, Index offset, Index column) {
    const float* bias = reinterpret_cast<const float*>(out.bias_by_col);
    const float* d = reinterpret_cast<const float*>(out.d[0]);
    return {
        false,         true,          out.chain.bias ? bias + column : nullptr, out.chain.add ? d + offset : nullptr,
        out.chain.low, out.chain.high};
}

// Rows of C that follow each other at one distance. Other kinds of rows (conv_sources.hpp) come in runs.
struct EvenRows {
    Index stride;  // in elements
    TILEWISE_INLINE Index offset(Index row) const { return row * stride; }
    TILEWISE_INLINE Index run_from(Index) const { return Index(1) << 62; }  // rows that follow evenly
};

// The share of one call, after any exchange of A and B. SourceA and SourceB are as pack.hpp says.
template <class SourceA, class SourceB, class Rows>
struct Task {
    SourceA a;            // from the first row of the rectangle, k = 0
    SourceB b;            // from the first column of the rectangle, k = 0
    Rows rows;            // where the rows of the rectangle are in C
    const u32* packed_b;  // preshuffle: the first panel that the rectangle touches, block k_begin / tile_k
    Index skip;           // preshuffle: columns of that panel left of the rectangle; 0 otherwise
    Index m, n, k_begin, k_end, k_total;
    OutView out;        // from the rectangle's first element
    OutView out_later;  // the same for the second and further blocks of k when C holds the sums: beta is 1
    bool sums_in_c;     // C can hold the sums
    bool start_from_c;  // and starts with its old value (beta is 1)
    bool limited;       // C could hold the sums, but for a chain that a register tile of all of k can do
};

template <class Config, class Core>
struct Blocked {
    using Engine = typename Core::Engine;
    using Acc = typename Engine::Acc;
    static constexpr Index kRows = Config::warp_m, kCols = Config::warp_n;
    static constexpr Index kBlockM = Config::tile_m, kBlockN = Config::tile_n, kBlockK = Config::tile_k;
    static constexpr Index kCompensation = Engine::compensates ? kCols : 0;  // words after each block of a panel
    static constexpr Index kRing = 2 * Config::wave_n;
    static constexpr bool kPackedAhead = Config::pipeline == Pipeline::preshuffle;
    static constexpr bool kOverlap = Config::pipeline == Pipeline::compv4;
    // What has been gathered need not be packed as well.
    template <class SourceA>
    static constexpr bool kMayReadA = Config::pipeline == Pipeline::basic_v1 || Config::pipeline == Pipeline::mem ||
                                      (kPackedAhead && SourceA::gathers);
    static constexpr bool kMayReadB = Config::pipeline == Pipeline::basic_v1;
    static_assert(kBlockM % kRows == 0, "tile_m must be a multiple of warp_m");
    static_assert(kBlockN % kCols == 0, "tile_n must be a multiple of warp_n");
    static_assert(kBlockK % Config::warp_k == 0, "tile_k must be a multiple of warp_k");
    static_assert(Config::wave_m >= 1 && Config::wave_n >= 1 && Config::wave_k == 1, "waves group m and n only");

    static TILEWISE_INLINE Index units_of(Index k) { return round_up(ceil_div(k, Engine::depth), Core::unit_step); }
    static TILEWISE_INLINE Index block_words() { return units_of(kBlockK) * kCols + kCompensation; }
    static TILEWISE_INLINE Index panel_words(Index k) {
        return units_of(k) * kCols + ceil_div(k, kBlockK) * kCompensation;
    }
    static TILEWISE_INLINE bool keeps_b(Index m, Index k) {
        return m > kBlockM && kBlockN / kCols * panel_words(k) * Index(sizeof(u32)) <= kKeepBytes;
    }

    // Scratch: A's block, then tiles of sums, then B's panels. No part of a problem needs more than the problem itself.
    static TILEWISE_INLINE Index a_words(Index m, Index k) {
        return round_up(round_up(least(m, kBlockM), kRows) * units_of(least(k, kBlockK)) + kLanes, kCacheLine);
    }
    static TILEWISE_INLINE Index tile_words(Index m, Index n, Index k) {
        if (k <= kBlockK) return round_up(kRows * kCols, kCacheLine);
        const Index cols = least(n + (kPackedAhead ? kCols : 0), kBlockN);
        return round_up(round_up(least(m, kBlockM), kRows) * round_up(cols, kCols), kCacheLine);
    }
    static TILEWISE_INLINE Index b_words(Index m, Index n, Index k) {
        if (kPackedAhead) return 0;
        const Index ring = kRing * block_words();
        const Index kept = ceil_div(least(n, kBlockN), kCols) * panel_words(k);
        return m > kBlockM && kept > ring ? least<Index>(kept, kKeepBytes / sizeof(u32)) : ring;
    }
    // A gathering source of A needs so much for a block: rows of whole cache lines, one line apart, so that they do not all
    // fall into the same sets of the cache.
    template <class SourceA>
    static TILEWISE_INLINE Index gather_words(Index m, Index k) {
        if constexpr (SourceA::gathers) {
            const Index lanes = least(m, kBlockM), depth = least(k, kBlockK);
            const Index by_lane = lanes * SourceA::store_stride(depth), by_k = depth * SourceA::store_stride(lanes);
            const Index bytes = (by_lane > by_k ? by_lane : by_k) * kBytes<typename SourceA::Element>;
            return round_up(bytes, kCacheLine) / Index(sizeof(u32));
        }
        return 0;
    }
    template <class SourceA>
    static TILEWISE_INLINE Index scratch_words(Index m, Index n, Index k) {
        return a_words(m, k) + tile_words(m, n, k) + gather_words<SourceA>(m, k) + b_words(m, n, k);
    }

    // One (n, m, k) cache block.
    template <class SourceA, class SourceB, class Rows>
    struct Block {
        using TA = typename SourceA::Element;
        using TB = typename SourceB::Element;
        const Task<SourceA, SourceB, Rows>& task;
        u32 *a_store, *b_store, *gather_store;
        Acc* tiles;
        bool keep_b;
        Index col = 0, cols = 0, row = 0,
              rows = 0;  // the block: columns from the first panel on, rows from the rectangle's first
        Index index = 0, k = 0, units = 0;  // which block of k, its elements and units
        bool pack_now = true, first_k = true, last_k = true, several_k = false, a_in_place = false, a_by_rows = false;
        Operand<TA> a_now = {};  // A of this block, as it lies or gathered

        TILEWISE_INLINE void set_k(Index block, Index blocks) {
            index = block;
            const Index begin = task.k_begin + block * kBlockK;
            k = least(kBlockK, task.k_end - begin);
            units = units_of(k);
            first_k = block == 0, last_k = block + 1 == blocks, several_k = blocks > 1;
        }
        // A gathered row ends in zeros up to a whole unit.
        TILEWISE_INLINE void take_a() {
            a_now = task.a.block(row, rows, k_begin(), k, reinterpret_cast<typename TA::Storage*>(gather_store));
            const bool is_gathered = reinterpret_cast<const u32*>(a_now.p) == gather_store;
            const bool whole_units = k % Engine::depth == 0 || is_gathered;
            a_by_rows = kMayReadA<SourceA> && a_now.k_stride == 1 && whole_units && !Core::whole_tiles;
            const bool by_lanes = a_now.lane_stride == 1 && Engine::depth == 1;
            a_in_place =
                kMayReadA<SourceA> && Engine::template in_place<TA> && !Core::whole_tiles && (a_by_rows || by_lanes);
            a_by_rows = a_by_rows && a_in_place;
        }
        TILEWISE_INLINE Index k_begin() const { return task.k_begin + index * kBlockK; }

        TILEWISE_INLINE void pack_a() const {
            if (a_in_place) return;
            for (Index i = 0; i < rows;) {
                const Index count = Core::piece_rows(rows - i);
                Core::pack_a(a_store + i * units, a_now.at(i, 0), least(count, rows - i), k, units);
                i += count;
            }
        }

        TILEWISE_INLINE u32* panel_store(Index panel) const {
            if (keep_b) return b_store + panel * panel_words(task.k_end - task.k_begin) + index * block_words();
            return b_store + panel % kRing * block_words();
        }
        TILEWISE_INLINE bool b_in_place(Index panel) const {
            if constexpr (SourceB::gathers)
                return false;
            else
                return kMayReadB && Engine::template in_place<TB> && Engine::depth == 1 && task.b.lane_stride == 1 &&
                       cols - panel * kCols >= kCols;
        }
        // Packs elements [from, to) of the block's k for a panel; from is a multiple of the depth.
        TILEWISE_INLINE void pack_b(Index panel, Index from, Index to) const {
            if (kPackedAhead || !pack_now || b_in_place(panel) || from >= to) return;
            u32* store_at = panel_store(panel);
            i32* compensation = reinterpret_cast<i32*>(store_at + units * kCols);
            pack_b_range(store_at, compensation, task.b, col + panel * kCols, cols - panel * kCols, k_begin(), from, to,
                         k, units);
        }

        // One register tile: `count` rows from i on, one panel.
        TILEWISE_INLINE void tile(Index i, Index count, Index panel) const {
            const u32* b = panel_store(panel);
            if constexpr (kPackedAhead) {
                b = task.packed_b + (col / kCols + panel) * panel_words(task.k_total) + index * block_words();
            }
            Index b_stride = kCols;
            if (b_in_place(panel)) {
                const auto from = task.b.block(col + panel * kCols, kCols, k_begin(), k, nullptr);
                b = reinterpret_cast<const u32*>(from.p), b_stride = from.k_stride;
            }
            UnitsOfA a = {reinterpret_cast<const char*>(a_store + i * units), count * Index(sizeof(u32))};
            if (a_in_place) {
                const auto from = a_now.at(i, 0);
                const Index stride = a_by_rows ? from.lane_stride : from.k_stride;
                a = {reinterpret_cast<const char*>(from.p), stride * kBytes<TA>};
            }
            // The panel's columns in the rectangle: [low, high) of the panel are wanted.
            const Index start = col + panel * kCols - task.skip, low = start < 0 ? -start : 0;
            const Index high = least(kCols, cols - panel * kCols);
            const bool whole = low == 0 && high == kCols && (!Core::whole_tiles || count == kRows);
            const bool limited = task.limited && !several_k && !Core::whole_tiles && units > 0;
            if ((task.sums_in_c || limited) && whole && task.rows.run_from(row + i) >= count) {
                const Index offset = task.rows.offset(row + i) + start;
                Acc* c = reinterpret_cast<Acc*>(task.out.c) + offset;
                const Ending ending =
                    limited ? limits_of(task.out, offset, start) : Ending{!first_k || task.start_from_c};
                return compute(count, high, a, b, b_stride, c, task.out.row_stride, ending);
            }
            const bool waits = several_k && !task.sums_in_c;
            Acc* sums = waits ? tiles + (panel * round_up(rows, kRows) + i) * kCols : tiles;
            const OutView& view = task.sums_in_c && !first_k ? task.out_later : task.out;
            if ((last_k || !waits) && task.rows.run_from(row + i) >= count) {
                view.prefetch_rows(task.rows.offset(row + i), count, start + low);
            }
            compute(count, high, a, b, b_stride, sums, kCols, Ending{waits && !first_k});
            if (waits && !last_k) return;
            finish_rows(view, i, count, start + low, sums + low, high - low);
        }
        // Sums of `count` rows from i on, one run of evenly spaced rows after the other.
        TILEWISE_INLINE void finish_rows(const OutView& view, Index i, Index count, Index column, const Acc* sums,
                                         Index width) const {
            for (Index done = 0; done < count;) {
                const Index run = least(count - done, task.rows.run_from(row + i + done));
                const Place at = {task.rows.offset(row + i + done), row + i + done, column};
                view.finish(view, at, sums + done * kCols, kCols, run, width);
                done += run;
            }
        }
        TILEWISE_INLINE void compute(Index count, Index width, UnitsOfA a, const u32* b, Index b_stride, Acc* c,
                                     Index c_stride, const Ending& ending) const {
            if (units == 0) {  // an empty part of a split k, or pixels of backward data that no tap meets
                for (Index i = 0; i < count * kCols && !ending.accumulate; ++i) c[i / kCols * c_stride + i % kCols] = 0;
                return;
            }
            if constexpr (kMayReadA<SourceA> && !Core::whole_tiles && Engine::template in_place<TA>) {
                if (a_by_rows) {
                    return Core::template tile<true>(count, width, a, b, b_stride, units, c, c_stride, ending);
                }
            }
            Core::template tile<false>(count, width, a, b, b_stride, units, c, c_stride, ending);
        }

        TILEWISE_OUTER void run() {
            take_a();
            pack_a();
            const Index panels = ceil_div(cols, kCols), step = kRows * Config::wave_m;
            // compv4 packs the next group in as many slices as there are rows of micro-tiles
            const Index slice = round_up(ceil_div(k, ceil_div(rows, step)), kLanes * Engine::depth);
            for (Index j = 0; j < panels; j += Config::wave_n) {
                const Index j_end = least<Index>(j + Config::wave_n, panels);
                if (!kOverlap || j == 0) {
                    for (Index q = j; q < j_end; ++q) pack_b(q, 0, k);
                }
                Index done = 0;
                for (Index i = 0; i < rows; i += step) {
                    for (Index q = j; q < j_end; ++q) row_of_tiles(i, least(i + step, rows), q);
                    if constexpr (kOverlap) {
                        for (Index q = j_end; q < least<Index>(j_end + Config::wave_n, panels); ++q) {
                            pack_b(q, done, least(done + slice, k));
                        }
                        done = least(done + slice, k);
                    }
                }
            }
        }
        TILEWISE_INLINE void row_of_tiles(Index i, Index end, Index panel) const {
            while (i < end) {
                const Index count = least(Core::piece_rows(rows - i), rows - i);
                tile(i, count, panel);
                i += count;
            }
        }
    };

    // Elements [from, to) of a block with k elements in all that begins at k_begin, into the panel at `store_at`. A source
    // that gathers does so a few k at a time, so that they are in the first cache when they are packed; fp32 needs no
    // packing after that and goes straight to its place.
    template <class SourceB>
    static TILEWISE_INLINE void pack_b_range(u32* store_at, i32* compensation, const SourceB& source, Index lane,
                                             Index lanes, Index k_begin, Index from, Index to, Index k, Index units) {
        using TB = typename SourceB::Element;
        lanes = least(lanes, kCols);
        if (Engine::compensates && from == 0) __builtin_memset(compensation, 0, kCols * sizeof(i32));
        const auto pack = [&](Operand<TB> operand, Index begin, Index count) {
            pack_panel<Engine, TB, false>(store_at + begin / Engine::depth * kCols, kCols, operand, lanes, count,
                                          compensation);
        };
        if constexpr (!SourceB::gathers) {
            pack(source.block(lane, lanes, k_begin + from, to - from, nullptr), from, to - from);
        } else if (Engine::template in_place<TB> && Engine::depth == 1 && !source.is_direct()) {
            source.fill(lane, lanes, k_begin + from, to - from,
                        reinterpret_cast<typename TB::Storage*>(store_at + from * kCols), kCols);
        } else {
            constexpr Index kGatherDepth = 64;
            alignas(kCacheLine) typename TB::Storage store[kGatherDepth * SourceB::store_stride(kCols)];
            for (Index begin = from; begin < to; begin += kGatherDepth) {
                const Index count = least(kGatherDepth, to - begin);
                pack(source.block(lane, lanes, k_begin + begin, count, store), begin, count);
            }
        }
        if (to == k) {  // zero units up to a whole step of the core
            const Index used = ceil_div(k, Engine::depth);
            __builtin_memset(store_at + used * kCols, 0, (units - used) * kCols * sizeof(u32));
        }
    }

    template <class SourceA, class SourceB, class Rows>
    TILEWISE_OUTER static void run(const Task<SourceA, SourceB, Rows>& task, void* scratch) {
        const Index k = task.k_end - task.k_begin, blocks = k > 0 ? ceil_div(k, kBlockK) : 1;
        u32* a_store = static_cast<u32*>(scratch);
        u32* tiles = a_store + a_words(task.m, k);
        u32* gather_store = tiles + tile_words(task.m, task.n, k);
        u32* b_store = gather_store + gather_words<SourceA>(task.m, k);
        Block<SourceA, SourceB, Rows> block = {
            task, a_store, b_store, gather_store, reinterpret_cast<Acc*>(tiles), keeps_b(task.m, k)};
        const Index n = task.n + task.skip;
        for (block.col = 0; block.col < n; block.col += kBlockN) {
            block.cols = least(kBlockN, n - block.col);
            for (block.row = 0; block.row < task.m; block.row += kBlockM) {
                block.rows = least(kBlockM, task.m - block.row);
                block.pack_now = block.row == 0 || !block.keep_b;
                for (Index p = 0; p < blocks; ++p) {
                    block.set_k(p, blocks);
                    block.run();
                }
            }
        }
    }
};

}  // namespace tilewise::cpu
