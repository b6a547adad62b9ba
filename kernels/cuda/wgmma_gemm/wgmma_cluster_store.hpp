// SPDX-License-Identifier: MIT
// The way of a tile's sums to C where the blocks of a cluster each have a part of k (cluster_k): every block puts its sums into
// its own shared memory, in the place of the stages, which nobody reads any more; then each takes a share of the tile, adds up
// what all of them have, in the order of the parts, so that the result is the same every time, and finishes it. No block may
// end before the others have read its sums.
#pragma once
#include "../../gpu/drain.hpp"
#include "../../gpu/epilogue.hpp"
#include "wgmma_shape.hpp"

namespace tilewise::cuda::wgmma_gemm {

template <class Config>
struct WgmmaClusterStore {
    using Shape = WgmmaShape<Config>;
    using Chain = ChainOf<Config>;
    using Out = typename Config::Out;
    using Sum = typename Shape::Sum;
    using Sums = typename Shape::Sums;
    using Value = ValueOf<Sum, Out>;

    // The tile as it lies in C: rows along n. Rows are apart by a little more than their length, so that what the threads of a
    // warp write at a time falls on different banks.
    static constexpr int kRows = Shape::kSwapped ? Shape::kTileN : Shape::kTileM;
    static constexpr int kColumns = Shape::kSwapped ? Shape::kTileM : Shape::kTileN;
    static constexpr int kPitch = kColumns + (Shape::kSwapped ? 4 : 8);
    static constexpr int kThreads = 128 * Shape::kWaves, kFour = 4;
    static_assert(kRows * kPitch * 4 <= Shape::kStaging, "the sums fit into the stages");
    static constexpr bool kStoresFours = Config::vector_c % kFour == 0;

    const KernelArgs& args;
    unsigned shared;  // its address

    static TILEWISE_DEVICE unsigned at(int row, int column) { return static_cast<unsigned>(row * kPitch + column) * 4; }

    TILEWISE_DEVICE void store(const Sums& sums, const TilePlace& tile, const WgmmaPlace& me) const {
        constexpr int kAllComputing = 6;      // a named barrier
        named_sync(kAllComputing, kThreads);  // the products of all have been computed
        put_sums(sums, me);
        cluster_sync();
        const int parts = args.split_k, part = static_cast<int>(cluster_rank());
        if (kStoresFours) {
            if (parts <= 2) {
                store_fours<2>(tile, parts, part, me);
            } else if (parts <= 4) {
                store_fours<4>(tile, parts, part, me);
            } else {
                store_fours<8>(tile, parts, part, me);
            }
        } else {
            store_elements(tile, parts, part, me);
        }
        cluster_sync();
    }

    // Where products leave their results is said at wgmma (hopper.hpp).
    TILEWISE_DEVICE void put_sums(const Sums& sums, const WgmmaPlace& me) const {
        const int row = me.thread / 32 * 16 + me.thread % 32 / 4 + me.wave * Shape::kWaveRows;
        const int column = me.thread % 4 * 2;
        TILEWISE_UNROLL
        for (int r = 0; r < Shape::kRepeats; ++r) {
            TILEWISE_UNROLL
            for (int i = 0; i < Shape::kOwnSums; i += 2) {
                put_pair(row + r * 64 + i / 2 % 2 * 8, column + i / 4 * 8, sums[r][i], sums[r][i + 1]);
            }
        }
    }
    TILEWISE_DEVICE void put_pair(int row, int column, Sum first, Sum second) const {
        const float low = __builtin_bit_cast(float, first), high = __builtin_bit_cast(float, second);
        if constexpr (Shape::kSwapped) {
            store_shared_float(shared + at(column, row), low);
            store_shared_float(shared + at(column + 1, row), high);
        } else {
            store_shared_float2(shared + at(row, column), low, high);
        }
    }

    // Rows of the tile that are in C.
    TILEWISE_DEVICE int rows_in(const TilePlace& tile) const {
        const Index left = args.m - Index(tile.tile_m) * kRows;
        return left < kRows ? static_cast<int>(left) : kRows;
    }
    // Where this part's share of `total` things begins.
    static TILEWISE_DEVICE int share(int total, int parts, int part) { return total * part / parts; }

    // Rows that hold whole fours. What other blocks have takes long to come, so a thread asks for all parts of several fours at
    // once: up to eight accesses.
    template <int kMostParts>
    TILEWISE_DEVICE void store_fours(const TilePlace& tile, int parts, int part, const WgmmaPlace& me) const {
        constexpr int kPerRow = kColumns / kFour, kAtOnce = 8 / kMostParts;
        const int total = rows_in(tile) * kPerRow, end = share(total, parts, part + 1);
        TILEWISE_ROLLED
        for (int first = share(total, parts, part) + me.wave * 128 + me.thread; first < end;
             first += kAtOnce * kThreads) {
            float words[kAtOnce][kMostParts][kFour] = {};
            TILEWISE_UNROLL
            for (int i = 0; i < kAtOnce; ++i) {
                const int four = first + i * kThreads;
                const unsigned from = shared + at(four / kPerRow, four % kPerRow * kFour);
                TILEWISE_UNROLL
                for (int p = 0; p < kMostParts; ++p) {
                    if (four >= end || p >= parts) continue;
                    // What this block has itself comes much sooner than through the cluster.
                    if (p == part) {
                        load_shared_float4(from, words[i][p]);
                    } else {
                        load_cluster_float4(in_block(from, p), words[i][p]);
                    }
                }
            }
            TILEWISE_UNROLL
            for (int i = 0; i < kAtOnce; ++i) {
                const int four = first + i * kThreads;
                if (four < end) finish_four(words[i], tile, four / kPerRow, four % kPerRow * kFour);
            }
        }
    }
    template <int kMostParts>
    TILEWISE_DEVICE void finish_four(const float (&words)[kMostParts][kFour], const TilePlace& tile, int row,
                                     int column) const {
        const Index at_row = Index(tile.tile_m) * kRows + row, at_column = Index(tile.tile_n) * kColumns + column;
        if (at_row >= args.m || at_column >= args.n) return;
        Sum sums[kFour] = {};
        TILEWISE_UNROLL
        for (int j = 0; j < kFour; ++j) {
            TILEWISE_UNROLL
            for (int p = 0; p < kMostParts; ++p) sums[j] += __builtin_bit_cast(Sum, words[p][j]);
        }
        const RunPlace place = run_place(args, tile.batch, at_row, at_column, kFour);
        Value values[kFour];
        finish_run<Chain, Out, Along::columns>(args, sums, place, values);
        write_run<Out>(args, place, values);
    }

    TILEWISE_DEVICE void store_elements(const TilePlace& tile, int parts, int part, const WgmmaPlace& me) const {
        const int total = rows_in(tile) * kColumns, end = share(total, parts, part + 1);
        TILEWISE_ROLLED
        for (int i = share(total, parts, part) + me.wave * 128 + me.thread; i < end; i += kThreads) {
            const int row = i / kColumns, column = i % kColumns;
            const Index at_row = Index(tile.tile_m) * kRows + row, at_column = Index(tile.tile_n) * kColumns + column;
            if (at_row >= args.m || at_column >= args.n) continue;
            Sum sum = 0;
            for (int p = 0; p < parts; ++p) {
                sum += __builtin_bit_cast(Sum, load_cluster_float(in_block(shared + at(row, column), p)));
            }
            tilewise::gpu::store<Out>(args, finish<Chain, Out>(args, sum, tile.batch, at_row, at_column), tile.batch,
                                      at_row, at_column);
        }
    }
};

}  // namespace tilewise::cuda::wgmma_gemm
