// SPDX-License-Identifier: MIT
// The way of a warpgroup's sums from registers to C: finished in registers and by tensor copies where the epilogue is known or nothing
// but alpha, and C's rows begin on 16 bytes; as rows shifted together in shared memory where they do not and results have 16 bits; in
// runs through shared memory, or as partial sums of split_k, otherwise. All through the warpgroup's two buffers in shared memory, which nobody else uses, so that the
// other warps go on with the next tile.
#pragma once
#include "../../gpu/epilogue.hpp"
#include "../../gpu/unaligned_row.hpp"
#include "wgmma_shape.hpp"

namespace tilewise::cuda::wgmma_gemm {

// Where in C a tile's results belong: in a matrix, right there. Told of every tile before its results come.
struct MatrixPlaces {
    static constexpr bool kMoves = false;  // whether there are rows or columns that belong elsewhere

    explicit TILEWISE_DEVICE MatrixPlaces(const KernelArgs&) {}
    TILEWISE_DEVICE void begin(const TilePlace&) {}

    // Whether boxes of 64 rows of a tile can be copied to where they belong; and where that is.
    TILEWISE_DEVICE bool in_boxes() const { return true; }
    struct Box {
        int row, batch;
    };
    TILEWISE_DEVICE Box box(const TilePlace& tile, int row) const { return {row, static_cast<int>(tile.batch)}; }
    TILEWISE_DEVICE void store(const TensorMap& map, unsigned from, int column, const Box& box) const {
        store_box(map, from, column, box.row, box.batch);
    }
};

template <class Config, class Places = MatrixPlaces>
struct WgmmaStore {
    using Shape = WgmmaShape<Config>;
    using Chain = ChainOf<Config>;
    using Out = typename Config::Out;
    using Sum = typename Shape::Sum;
    using Sums = typename Shape::Sums;
    using Value = ValueOf<Sum, Out>;
    using Results = Value[Shape::kStoreColumns / 2];  // of a thread, in one buffer
    using Element = typename Out::Storage;
    // Whether what the chain reads is held in registers before it is needed.
    static constexpr bool kHolds = Chain::kFixed && !Chain::kPlain && kIsAccess<Out, 2> && Shape::kStoresBoxes;
    using Terms = HeldTerms<typename ChooseType<Chain::kFixed, Chain, PlainChain>::type, Out, 2>;

    struct ResultRows {
        Index batch, row[2];  // of C; -1: not there
    };

    const KernelArgs& args;
    const TensorMap& map_c;
    unsigned shared;  // its address
    Places places;

    // ---- Bias, C and D of a tile ----

    // The bias is read before a tile's products are computed. Lane l has of every eight groups of 8 columns pair l % 4 of group l / 4;
    // each lane gets what it needs from another.
    static constexpr int kBiasSets = (Shape::kTileN / 8 + 7) / 8;
    struct TileBias {
        typename Terms::Access sets[kBiasSets];
    };
    struct NoBias {};
    using Bias = typename ChooseType<kHolds && Chain::kHasBias, TileBias, NoBias>::type;

    TILEWISE_DEVICE Bias read_bias(const TilePlace& tile) const {
        Bias bias{};
        if constexpr (kHolds && Chain::kHasBias) {
            TILEWISE_UNROLL
            for (int i = 0; i < kBiasSets; ++i) {
                const int group = Shape::first_column(tile) + (i * 8 + lane_index() / 4) * 8;
                const RunPlace place =
                    place_of<Places::kMoves>({batch_of(tile), {0, 0}}, 0, group, lane_index() % 4 * 2);
                bias.sets[i] = read_access<Out, 2>(args.bias, place.bias, place.count);
            }
        }
        return bias;
    }
    static TILEWISE_DEVICE typename Terms::Access bias_of(const TileBias& bias, int group) {
        typename Terms::Access pair;
        TILEWISE_UNROLL
        for (int i = 0; i < Out::bytes / 2; ++i) {
            pair.words[i] = from_lane(bias.sets[group / 8].words[i], group % 8 * 4 + lane_index() % 4);
        }
        return pair;
    }

    // A line of each row of C and D on its way to L2 while products are computed.
    TILEWISE_DEVICE void prefetch_tensors(const TilePlace& tile, int row_begin, int thread) const {
        if constexpr (kHolds && Chain::kReadsTensors && !Places::kMoves) {
            TILEWISE_ROLLED
            for (int chunk = thread / 64; chunk < Shape::kRepeats * Shape::kStoreChunks; chunk += 2) {
                const Index column = Shape::first_column(tile) + chunk % Shape::kStoreChunks * Shape::kStoreColumns;
                const Index row = row_begin + chunk / Shape::kStoreChunks * 64 + thread % 64;
                if (column >= args.n || row >= args.m) continue;
                const Index at = tile.batch * args.c.batch_stride + row * args.c.row_stride + column;
                if (Chain::kBeta && args.beta != 0.0f) prefetch_l2(static_cast<const Element*>(args.c.data) + at);
                TILEWISE_UNROLL
                for (int d = 0; d < Chain::kTensors; ++d) prefetch_l2(static_cast<const Element*>(args.d[d]) + at);
            }
        }
    }
    TILEWISE_DEVICE Index batch_of(const TilePlace& tile) const {
        if constexpr (Places::kMoves) return places.group(tile);
        return tile.batch;
    }

    // Those of a buffer.
    using Held = typename ChooseType<kHolds, Terms, ReadLater>::type[Shape::kStoreColumns / 8][2];
    template <bool moved>
    TILEWISE_DEVICE void hold(const TilePlace& tile, int chunk, const ResultRows& rows, int thread, const Bias& bias,
                              Held& held) const {
        if constexpr (kHolds) {
            TILEWISE_UNROLL
            for (int g = 0; g < Shape::kStoreColumns / 8; ++g) {
                if (g * 8 >= Shape::columns_of(chunk)) break;
                const int group = chunk * (Shape::kStoreColumns / 8) + g;
                TILEWISE_UNROLL
                for (int half = 0; half < 2; ++half) {
                    if constexpr (Chain::kReadsTensors) {
                        hold_tensors(args,
                                     place_of<moved>(rows, half, Shape::first_column(tile) + group * 8, thread % 4 * 2),
                                     held[g][half]);
                    }
                }
                if constexpr (Chain::kHasBias) held[g][0].bias = held[g][1].bias = bias_of(bias, group);
            }
        }
    }

    // Results that are finished in registers: through shared memory, by tensor copies.
    TILEWISE_DEVICE void store_boxes(const Sums& sums, const TilePlace& tile, int row_begin, const WgmmaPlace& me,
                                     const Bias& bias, unsigned& turn) const {
        const unsigned staging = shared + Shape::kResults + static_cast<unsigned>(me.wave * 2 * Shape::kStagingBytes);
        // C and D of the next buffer are on their way while one is finished, where registers allow it.
        constexpr bool kAhead = Shape::kRepeats * Shape::kOwnSums < 128 && Shape::kWaves < 3;
        Held held[2];
        if constexpr (kAhead)
            hold<false>(tile, 0, rows_of<false>(tile, row_begin, me.thread), me.thread, bias, held[0]);
        TILEWISE_UNROLL
        for (int r = 0; r < Shape::kRepeats; ++r) {
            const typename Places::Box box = places.box(tile, row_begin + r * 64);
            const ResultRows rows = rows_of<false>(tile, row_begin + r * 64, me.thread);
            TILEWISE_UNROLL
            for (int chunk = 0; chunk < Shape::kStoreChunks; ++chunk) {
                const int now = r * Shape::kStoreChunks + chunk, next = kAhead ? now + 1 : now;
                if (next < Shape::kRepeats * Shape::kStoreChunks) {
                    hold<false>(tile, next % Shape::kStoreChunks,
                                rows_of<false>(tile, row_begin + next / Shape::kStoreChunks * 64, me.thread), me.thread,
                                bias, held[next % 2]);
                }
                Results results;
                finish_chunk<false>(sums[r], tile, chunk, rows, me.thread, held[now % 2], results);
                // The buffers take turns across tiles too: the copy before the last may still be reading its own.
                const unsigned buffer = staging + turn * Shape::kStagingBytes;
                turn ^= 1;
                if (me.thread == 0) store_wait_read<1>();
                me.sync();
                put_results(buffer, results, chunk, me.thread);
                async_proxy_fence();
                me.sync();
                if (me.thread == 0) {
                    places.store(map_c, buffer, Shape::first_column(tile) + chunk * Shape::kStoreColumns, box);
                    store_commit();
                }
            }
        }
    }

    // The same where rows or columns have other places in C: threads write 16 bytes of a line each.
    TILEWISE_DEVICE void store_lines(const Sums& sums, const TilePlace& tile, int row_begin, const WgmmaPlace& me,
                                     const Bias& bias, unsigned& turn) const {
        constexpr int kPacks = Shape::kStoreBytes / 16, kElements = 16 / Out::bytes, kRows = 128 / kPacks;
        const unsigned staging = shared + Shape::kResults + static_cast<unsigned>(me.wave * 2 * Shape::kStagingBytes);
        auto* c = static_cast<typename Out::Storage*>(args.c.data) + places.group(tile) * args.c.batch_stride;
        const int first = me.thread / kPacks, pack = me.thread % kPacks;
        TILEWISE_UNROLL
        for (int r = 0; r < Shape::kRepeats; ++r) {
            const ResultRows own = rows_of<true>(tile, row_begin + r * 64, me.thread);
            Index rows[64 / kRows];
            TILEWISE_UNROLL
            for (int i = 0; i < 64 / kRows; ++i) rows[i] = places.row(row_begin + r * 64 + i * kRows + first);
            TILEWISE_UNROLL
            for (int chunk = 0; chunk < Shape::kStoreChunks; ++chunk) {
                Held held;
                hold<true>(tile, chunk, own, me.thread, bias, held);
                Results results;
                finish_chunk<true>(sums[r], tile, chunk, own, me.thread, held, results);
                // Everyone has left the buffer before the last one.
                const unsigned buffer = staging + turn * Shape::kStagingBytes;
                turn ^= 1;
                put_results(buffer, results, chunk, me.thread);
                me.sync();
                // Each pack asks for its own place: 8-bit results have two lines of columns in a buffer.
                const int column = pack * kElements;
                const auto place = places.columns(Shape::first_column(tile) + chunk * Shape::kStoreColumns + column);
                if (place.count <= 0 || column >= Shape::columns_of(chunk)) continue;
                TILEWISE_UNROLL
                for (int i = 0; i < 64 / kRows; ++i) {
                    if (rows[i] < 0) continue;
                    float four[4];
                    load_shared_float4(buffer + swizzled(i * kRows + first, pack * 16), four);
                    store_global<16>(
                        c + rows[i] * args.c.row_stride + place.first,
                        Packet<16>{bits_of(four[0]), bits_of(four[1]), bits_of(four[2]), bits_of(four[3])});
                }
            }
        }
    }

    // The same where rows of C begin anywhere.
    TILEWISE_DEVICE void store_rows(const Sums& sums, const TilePlace& tile, int row_begin, const WgmmaPlace& me,
                                    unsigned& turn) const {
        const unsigned staging = shared + Shape::kResults + static_cast<unsigned>(me.wave * 2 * Shape::kStagingBytes);
        auto* c = static_cast<Element*>(args.c.data) + batch_of(tile) * args.c.batch_stride;
        TILEWISE_UNROLL
        for (int r = 0; r < Shape::kRepeats; ++r) {
            const ResultRows own = rows_of<Places::kMoves>(tile, row_begin + r * 64, me.thread);
            TILEWISE_UNROLL
            for (int chunk = 0; chunk < Shape::kStoreChunks; ++chunk) {
                Results results;
                finish_chunk<Places::kMoves>(sums[r], tile, chunk, own, me.thread, Held{}, results);
                const unsigned buffer = staging + turn * Shape::kStagingBytes;
                turn ^= 1;
                put_results(buffer, results, chunk, me.thread);
                me.sync();
                write_rows(buffer, c, tile, row_begin + r * 64, chunk, me.thread);
            }
        }
    }
    TILEWISE_DEVICE void write_rows(unsigned buffer, Element* c, const TilePlace& tile, int row_begin, int chunk,
                                    int thread) const {
        constexpr int kPacks = Shape::kStoreBytes / 16, kRows = 128 / kPacks, kEach = 64 / kRows;
        const int column = Shape::first_column(tile) + chunk * Shape::kStoreColumns, most = Shape::columns_of(chunk);
        const auto chunks_of = [&](int i) {
            const int row = i * kRows + thread / kPacks;
            return [=](int pack) { return buffer + swizzled(row, pack * 16); };
        };
        // Several rows are on their way where registers allow it.
        constexpr int kAtOnce = Shape::kRepeats * Shape::kOwnSums < 128 ? kEach : 1;
        TILEWISE_ROLLED
        for (int first = 0; first < kEach; first += kAtOnce) {
            UnalignedRow<Out, Shape::kStoreBytes> rows[kAtOnce];
            TILEWISE_UNROLL
            for (int i = 0; i < kAtOnce; ++i) {
                const InC at = element_at(tile, row_begin, column, (first + i) * kRows + thread / kPacks, 0);
                const int count = at.left <= 0 ? 0 : at.left < most ? static_cast<int>(at.left) : most;
                rows[i].load(c + at.row * args.c.row_stride + at.column, count, thread % kPacks, chunks_of(first + i));
            }
            TILEWISE_UNROLL
            for (int i = 0; i < kAtOnce; ++i) rows[i].store(chunks_of(first + i));
        }
    }

    // ---- Finishing in registers: a thread has two rows of 64, eight apart, and of each group of 8 columns two neighbours ----

    template <bool moved>
    TILEWISE_DEVICE ResultRows rows_of(const TilePlace& tile, int first, int thread) const {
        const Index row = first + thread / 32 * 16 + thread % 32 / 4;
        if constexpr (moved) return {places.group(tile), {places.row(row), places.row(row + 8)}};
        return {tile.batch, {row < args.m ? row : -1, row + 8 < args.m ? row + 8 : -1}};
    }
    template <bool moved>
    TILEWISE_DEVICE void finish_chunk(const Sum (&d)[Shape::kOwnSums], const TilePlace& tile, int chunk,
                                      const ResultRows& rows, int thread, const Held& held, Results& results) const {
        TILEWISE_UNROLL
        for (int g = 0; g < Shape::kStoreColumns / 8; ++g) {
            if (g * 8 >= Shape::columns_of(chunk)) break;
            const int column = chunk * Shape::kStoreColumns + g * 8;
            TILEWISE_UNROLL
            for (int half = 0; half < 2; ++half) {
                const int from = column / 2 + half * 2, to = g * 4 + half * 2;
                const Sum pair[2] = {d[from], d[from + 1]};
                Value values[2];
                const RunPlace place = place_of<moved>(rows, half, Shape::first_column(tile) + column, thread % 4 * 2);
                finish_in_registers<Chain, Out, Along::columns>(args, pair, place, values, held[g][half]);
                results[to] = values[0], results[to + 1] = values[1];
            }
        }
    }
    // Two of a group of 8 columns, from `own` on.
    template <bool moved>
    TILEWISE_DEVICE RunPlace place_of(const ResultRows& rows, int half, int group, int own) const {
        RunPlace place{};
        if constexpr (Chain::kFixed && !Chain::kPlain) {
            Index first = group, left = args.n - group;
            if constexpr (moved) {
                const auto columns = places.columns(group);
                first = columns.first, left = columns.count;
            }
            place.row = rows.row[half], place.col = first + own;
            place.at = rows.batch * args.c.batch_stride + place.row * args.c.row_stride + place.col;
            place.bias = rows.batch * args.bias_batch_stride + place.col;
            place.count = place.row < 0 ? 0 : left - own < 2 ? static_cast<int>(left - own) : 2;
        }
        return place;
    }

    // The XOR of 16-byte chunks that the copy expects in the lines.
    static TILEWISE_DEVICE unsigned swizzled(int row, int byte) {
        constexpr unsigned kXorMask = Shape::kStoreBytes / 16 - 1;
        const auto offset = static_cast<unsigned>(row * Shape::kStoreBytes + byte);
        return offset ^ ((offset >> 7 & kXorMask) << 4);
    }

    // 64 rows of kStoreColumns results in a buffer.
    TILEWISE_DEVICE void put_results(unsigned buffer, const Results& x, int chunk, int thread) const {
        const int lane = thread % 32, warp_row = thread / 32 * 16;
        if constexpr (Out::bytes == 2) {
            // stmatrix: lanes 0-7 give the lines of the upper left 8 x 8, then lower left, upper right, lower right.
            const int row = warp_row + lane % 16, column_bytes = lane / 16 * 16;
            TILEWISE_UNROLL
            for (int c = 0; c < Shape::kStoreColumns / 16; ++c) {
                if (c * 16 >= Shape::columns_of(chunk)) break;
                const int i = c * 8;
                store_matrices(buffer + swizzled(row, c * 32 + column_bytes),
                               {pack_pair<Out>(x[i], x[i + 1]), pack_pair<Out>(x[i + 2], x[i + 3]),
                                pack_pair<Out>(x[i + 4], x[i + 5]), pack_pair<Out>(x[i + 6], x[i + 7])});
            }
        } else {
            const int row = warp_row + lane / 4, column = lane % 4 * 2;
            TILEWISE_UNROLL
            for (int c = 0; c < Shape::kStoreColumns / 8; ++c) {
                if (c * 8 >= Shape::columns_of(chunk)) break;
                const int i = c * 4, byte = (c * 8 + column) * Out::bytes;
                put_pair(buffer + swizzled(row, byte), x[i], x[i + 1]);
                put_pair(buffer + swizzled(row + 8, byte), x[i + 2], x[i + 3]);
            }
        }
    }
    static TILEWISE_DEVICE void put_pair(unsigned at, Value low, Value high) {
        if constexpr (Out::bytes == 4) {
            store_shared_float2(at, __builtin_bit_cast(float, element_of<Out>(low)),
                                __builtin_bit_cast(float, element_of<Out>(high)));
        } else {
            store_shared<2>(at, {pack_bytes<Out>(low, high)});
        }
    }

    // ---- Everything else ----

    // 64 rows of some sums at a time through shared memory. The loop over them is not unrolled, and exists once, so that the code
    // stays small; only the registers are picked by hand.
    TILEWISE_DEVICE void store_elements(const Sums& sums, const TilePlace& tile, int row_begin,
                                        const WgmmaPlace& me) const {
        const unsigned staging = shared + Shape::kResults + static_cast<unsigned>(me.wave * 2 * Shape::kStagingBytes);
        const bool partial = args.split_k > 1;
        // A copy of the last tile may still be reading.
        if (me.thread == 0) store_wait_read<0>();
        me.sync();
        TILEWISE_ROLLED
        for (int part = 0; part < Shape::kRepeats * Shape::kStagedChunks; ++part) {
            TILEWISE_UNROLL
            for (int r = 0; r < Shape::kRepeats; ++r) {
                TILEWISE_UNROLL
                for (int chunk = 0; chunk < Shape::kStagedChunks; ++chunk) {
                    if (part == r * Shape::kStagedChunks + chunk) stage_sums(staging, sums[r], chunk, me.thread);
                }
            }
            me.sync();
            const int row = row_begin + part / Shape::kStagedChunks * 64;
            const int column = Shape::first_column(tile) + part % Shape::kStagedChunks * Shape::kStagedColumns;
            if (partial) {
                store_sums(staging, tile, row, column, me.thread);
            } else {
                finish_part(staging, tile, row, column, me.thread);
            }
            me.sync();
        }
    }

    // Neighbouring rows begin in other banks: groups of 8 columns change places.
    static constexpr int kGroups = Shape::kStagedColumns / 8;
    static TILEWISE_DEVICE unsigned staged_at(int row, int column) {
        return static_cast<unsigned>(row * Shape::kStagedColumns + ((column / 8) ^ (row % kGroups)) * 8 + column % 8) *
               4;
    }

    static TILEWISE_DEVICE float word(Sum sum) { return __builtin_bit_cast(float, sum); }
    static TILEWISE_DEVICE Sum load_sum(unsigned at) { return __builtin_bit_cast(Sum, load_shared_float(at)); }

    TILEWISE_DEVICE void stage_sums(unsigned staging, const Sum (&d)[Shape::kOwnSums], int chunk, int thread) const {
        const int row = thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2;
        TILEWISE_UNROLL
        for (int c = 0; c < kGroups; ++c) {
            const int i = (chunk * Shape::kStagedColumns + c * 8) / 2;
            store_shared_float2(staging + staged_at(row, c * 8 + column), word(d[i]), word(d[i + 1]));
            store_shared_float2(staging + staged_at(row + 8, c * 8 + column), word(d[i + 2]), word(d[i + 3]));
        }
    }

    // The part's element (row, column) is C's; `left` of its neighbours along a run are too.
    struct InC {
        Index batch, row, column, left;
    };
    TILEWISE_DEVICE InC element_at(const TilePlace& tile, int row_begin, int column_begin, int row, int column) const {
        if constexpr (Places::kMoves) {
            const auto place = places.columns(column_begin);
            const Index at_row = places.row(row_begin + row);
            return {places.group(tile), at_row, place.first + column, at_row < 0 ? 0 : place.count - column};
        }
        const Index at_row = Shape::kSwapped ? column_begin + column : row_begin + row;
        const Index at_column = Shape::kSwapped ? row_begin + row : column_begin + column;
        const Index left = Config::c_row ? args.n - at_column : args.m - at_row;
        return {tile.batch, at_row, at_column, at_row < args.m && at_column < args.n ? left : 0};
    }
    // Threads that are neighbours take elements that are: along the tile's columns, or its rows.
    static constexpr bool kAlongColumns = Config::c_row != Shape::kSwapped;

    TILEWISE_DEVICE void finish_part(unsigned staging, const TilePlace& tile, int row_begin, int column_begin,
                                     int thread) const {
        constexpr int kRun = 4, kRowRuns = Shape::kStagedColumns / kRun, kColumnRuns = 64 / kRun;
        TILEWISE_ROLLED
        for (int i = thread; i < 64 * kRowRuns; i += 128) {
            const int row = kAlongColumns ? i / kRowRuns : i % kColumnRuns * kRun;
            const int column = kAlongColumns ? i % kRowRuns * kRun : i / kColumnRuns;
            const InC at = element_at(tile, row_begin, column_begin, row, column);
            if (at.left <= 0) continue;
            Sum sums[kRun];
            TILEWISE_UNROLL
            for (int e = 0; e < kRun; ++e) {
                sums[e] = load_sum(staging + (kAlongColumns ? staged_at(row, column + e) : staged_at(row + e, column)));
            }
            const int count = at.left < kRun ? static_cast<int>(at.left) : kRun;
            const RunPlace place = run_place(args, at.batch, at.row, at.column, count);
            Value values[kRun];
            finish_run<Chain, Out, Config::c_row ? Along::columns : Along::rows>(args, sums, place, values);
            write_run<Out>(args, place, values);
        }
    }

    // Partial sums to the workspace, one by one.
    TILEWISE_DEVICE void store_sums(unsigned staging, const TilePlace& tile, int row_begin, int column_begin,
                                    int thread) const {
        TILEWISE_ROLLED
        for (int i = thread; i < 64 * Shape::kStagedColumns; i += 128) {
            const int row = kAlongColumns ? i / Shape::kStagedColumns : i % 64;
            const int column = kAlongColumns ? i % Shape::kStagedColumns : i / 64;
            const InC at = element_at(tile, row_begin, column_begin, row, column);
            if (at.left <= 0) continue;
            const Index matrix = static_cast<Index>(tile.k_part) * args.batch + at.batch;
            static_cast<Sum*>(args.workspace)[(matrix * args.m + at.row) * args.n + at.column] =
                load_sum(staging + staged_at(row, column));
        }
    }
};

}  // namespace tilewise::cuda::wgmma_gemm
