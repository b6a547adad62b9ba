// SPDX-License-Identifier: MIT
// The arithmetic of a warp in plain fp32: a warp tile of 32 x 64 or 32 x 32 is shared out among 4 x 8 or 8 x 4 lanes,
// each with 8 x 8 or 4 x 8 sums in registers; a wave has as many warp tiles as its share of the block's tile. Operands
// come from shared memory in accesses of four: four steps of k of one row where the tile lies along k, four rows of one
// step of k where it does not. Which rows a lane has follows from that (LaneShare), so that neighbouring lanes read
// neighbouring lines or neighbouring chunks, which is free of bank conflicts.
#pragma once
#include "drain.hpp"
#include "mainloop.hpp"

namespace tilewise::cuda {

inline constexpr int kFour = 4;          // floats of an access
using FourByFour = float[kFour][kFour];  // rows (or columns), steps of k

// The rows (or columns) of a warp tile that a lane has: every lanes-th where the tile lies along k, groups of four
// otherwise. `count` of them for each of `lanes` lanes.
template <class Tile, int lanes, int count>
struct LaneShare {
    static constexpr bool kAlongK = Tile::kAlongK;
    static_assert(count % kFour == 0);
    static constexpr int kLaneStep = kAlongK ? 1 : kFour;   // from lane to lane
    static TILEWISE_DEVICE constexpr int first_of(int i) {  // of lane 0
        return kAlongK ? i * lanes : i / kFour * kFour * lanes + i % kFour;
    }
    static TILEWISE_DEVICE int index(int lane, int i) { return first_of(i) + lane * kLaneStep; }

    // Four steps of k (chunk number `chunk` of k) of the lane's rows 4 * group to 4 * group + 3; `first` is the warp
    // tile's first row.
    static TILEWISE_DEVICE void fetch(SharedAddress tile, int first, int lane, int group, int chunk, FourByFour& to) {
        if constexpr (kAlongK) {
            TILEWISE_UNROLL
            for (int i = 0; i < kFour; ++i) {
                const int line = first + index(lane, group * kFour + i);
                load_shared_float4(tile + Tile::Layout::offset(line, chunk), to[i]);
            }
        } else {
            const int column = (first + index(lane, group * kFour)) / kFour;
            TILEWISE_UNROLL
            for (int k = 0; k < kFour; ++k) {
                float four[kFour];
                load_shared_float4(tile + Tile::Layout::offset(chunk * kFour + k, column), four);
                TILEWISE_UNROLL
                for (int i = 0; i < kFour; ++i) to[i][k] = four[i];
            }
        }
    }
};

template <class Config>
struct SimtCore {
    using Shape = BlockShape<Config>;
    static_assert(kSame<typename Config::A, Fp32> && kSame<typename Config::B, Fp32>, "plain arithmetic is for fp32");
    static_assert(Config::warp_m == 32 && (Config::warp_n == 64 || Config::warp_n == 32) && Config::warp_k == 1,
                  "a warp tile of 32 x 64 or 32 x 32");
    static_assert(Config::tile_k % kFour == 0, "k is taken in fours");
    static constexpr int kLanesN = Config::warp_n / 8, kLanesM = 32 / kLanesN;
    static constexpr int kRows = Config::warp_m / kLanesM, kCols = Config::warp_n / kLanesN;  // of a lane
    using Rows = LaneShare<typename Shape::A, kLanesM, kRows>;
    using Cols = LaneShare<typename Shape::B, kLanesN, kCols>;
    static constexpr int kWaveM = Config::tile_m / Config::wave_m, kWaveN = Config::tile_n / Config::wave_n;
    static_assert(kWaveM % Config::warp_m == 0 && kWaveN % Config::warp_n == 0, "a wave has whole warp tiles");
    static constexpr int kTilesM = kWaveM / Config::warp_m, kTilesN = kWaveN / Config::warp_n;

    float sums[kTilesM][kTilesN][kRows][kCols] = {};
    int warp = warp_index();
    int first_row = warp / Config::wave_n * kWaveM;  // of the wave, in the tile
    int first_col = warp % Config::wave_n * kWaveN;
    int lane_m = lane_index() / kLanesN, lane_n = lane_index() % kLanesN;

    // Unrolled along k only where few sums leave registers for the operands of the next steps.
    static constexpr int kManySums = 128;
    TILEWISE_DEVICE void multiply(SharedAddress a, SharedAddress b) {
        constexpr int chunks = Config::tile_k / kFour;
        if constexpr (kTilesM * kTilesN * kRows * kCols < kManySums) {
            TILEWISE_UNROLL
            for (int chunk = 0; chunk < chunks; ++chunk) multiply_chunk(a, b, chunk);
        } else {
            TILEWISE_ROLLED
            for (int chunk = 0; chunk < chunks; ++chunk) multiply_chunk(a, b, chunk);
        }
    }
    TILEWISE_DEVICE void multiply_chunk(SharedAddress a, SharedAddress b, int chunk) {
        TILEWISE_UNROLL
        for (int j = 0; j < kTilesN; ++j) {
            FourByFour right[kCols / kFour];
            TILEWISE_UNROLL
            for (int g = 0; g < kCols / kFour; ++g) {
                Cols::fetch(b, first_col + j * Config::warp_n, lane_n, g, chunk, right[g]);
            }
            TILEWISE_UNROLL
            for (int i = 0; i < kTilesM * kRows / kFour; ++i) {  // four rows at a time: registers are scarce
                constexpr int groups = kRows / kFour;
                FourByFour left;
                Rows::fetch(a, first_row + i / groups * Config::warp_m, lane_m, i % groups, chunk, left);
                multiply_add(sums[i / groups][j], i % groups, left, right);
            }
        }
    }
    static TILEWISE_DEVICE void multiply_add(float (&sum)[kRows][kCols], int group, const FourByFour& left,
                                             const FourByFour (&right)[kCols / kFour]) {
        TILEWISE_UNROLL
        for (int k = 0; k < kFour; ++k) {
            TILEWISE_UNROLL
            for (int r = 0; r < kFour; ++r) {
                TILEWISE_UNROLL
                for (int c = 0; c < kCols; ++c) {
                    sum[group * kFour + r][c] += left[r][k] * right[c / kFour][c % kFour][k];
                }
            }
        }
    }

    // A pass takes one row of every lane: kLanesM rows of a warp tile, which are kRowStep apart.
    static constexpr int kRegionRows = kLanesM, kRegionCols = Config::warp_n, kRowStep = Rows::kLaneStep;
    static constexpr int kPasses = kTilesM * kTilesN * kRows;
    using Region = DrainRegion<kRegionRows, kRegionCols>;

    TILEWISE_DEVICE int pass_row(int pass) const {
        return first_row + pass / kRows / kTilesN * Config::warp_m + Rows::index(0, pass % kRows);
    }
    TILEWISE_DEVICE int pass_col(int pass) const { return first_col + pass / kRows % kTilesN * Config::warp_n; }
    TILEWISE_DEVICE void put(int pass, SharedAddress region) const {
        TILEWISE_UNROLL
        for (int p = 0; p < kPasses; ++p) {  // registers have no addresses: every pass has its own code
            if (p != pass) continue;
            TILEWISE_UNROLL
            for (int c = 0; c < kCols; ++c) {
                store_shared_float(region + Region::at(lane_m, Cols::index(lane_n, c)),
                                   sums[p / kRows / kTilesN][p / kRows % kTilesN][p % kRows][c]);
            }
        }
    }

    static constexpr int kRun = Cols::kAlongK ? 1 : kFour;
    template <class F>
    TILEWISE_DEVICE void visit(F&& f) const {
        TILEWISE_UNROLL
        for (int p = 0; p < kPasses; ++p) {
            const int row = pass_row(p) + lane_m * kRowStep;
            TILEWISE_UNROLL
            for (int c = 0; c < kCols; c += kRun) {
                float run[kRun];
                TILEWISE_UNROLL
                for (int i = 0; i < kRun; ++i) {
                    run[i] = sums[p / kRows / kTilesN][p / kRows % kTilesN][p % kRows][c + i];
                }
                f(row, pass_col(p) + Cols::index(lane_n, c), run);
            }
        }
    }
};

}  // namespace tilewise::cuda
