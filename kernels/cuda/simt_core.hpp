// SPDX-License-Identifier: MIT
// The arithmetic of a warp in plain fp32: a warp tile of 32 x 64 or 32 x 32 is shared out among 4 x 8 or 8 x 4 lanes,
// each with 8 x 8 or 4 x 8 sums in registers; a wave has as many warp tiles as its share of the block's tile. Tiles lie along
// m and n in shared memory (transposed_tile.hpp turns the others around), a line for each step of k, so that a lane gets
// four rows or columns of one step by one access. The next step is fetched ahead of the arithmetic of this one.
#pragma once
#include "drain.hpp"
#include "mainloop.hpp"

namespace tilewise::cuda {

inline constexpr int kFour = 4;  // floats of an access
using Four = float[kFour];

// The rows (or columns) of a warp tile that a lane has: groups of four, a group of every lane after the other.
template <class Tile, int lanes, int count>
struct LaneShare {
    static_assert(count % kFour == 0 && !Tile::kAlongK);
    static_assert(lanes == kBankChunks || lanes * 2 == kBankChunks,
                  "lanes side by side fill all banks, or half of them");
    static_assert(Tile::Layout::kChunks >= kBankChunks, "a line fills all banks");
    static constexpr int kLaneStep = kFour;                 // from lane to lane
    static TILEWISE_DEVICE constexpr int first_of(int i) {  // of lane 0
        return i / kFour * kFour * lanes + i % kFour;
    }
    static TILEWISE_DEVICE int index(int lane, int i) { return first_of(i) + lane * kLaneStep; }

    // Where in a line a lane's first group is, before the exchange of chunks; `first` is the wave's first row.
    static TILEWISE_DEVICE u32 start(int first, int lane) { return u32(first + lane * kFour) * u32(sizeof(float)); }
    // Group number `group` at step k, known at compile time, of a lane whose first group is at `own` in the line of step 0,
    // a multiple of eight: the place that Layout gives to its chunk, with one operation for all groups of a step.
    static TILEWISE_DEVICE void fetch(SharedAddress own, int group, int k, Four& to) {
        constexpr int line_bytes = Tile::Layout::kChunks * kChunkBytes;
        const SharedAddress exchanged = own ^ u32(k % lanes * kChunkBytes);
        const int other = group ^ (k % kBankChunks / lanes);
        load_shared_float4(exchanged + u32(k * line_bytes + other * lanes * kChunkBytes), to);
    }
};

template <class Config>
struct SimtCore {
    using Shape = BlockShape<Config>;
    static_assert(kSame<typename Config::A, Fp32> && kSame<typename Config::B, Fp32>, "plain arithmetic is for fp32");
    static_assert(Config::warp_m == 32 && (Config::warp_n == 64 || Config::warp_n == 32) && Config::warp_k == 1,
                  "a warp tile of 32 x 64 or 32 x 32");
    static_assert(Config::math == Math::strict, "no product is rounded");
    static constexpr int kLanesN = Config::warp_n / 8, kLanesM = 32 / kLanesN;
    static constexpr int kRows = Config::warp_m / kLanesM, kCols = Config::warp_n / kLanesN;  // of a lane
    using Rows = LaneShare<typename Shape::A, kLanesM, kRows>;
    using Cols = LaneShare<typename Shape::B, kLanesN, kCols>;
    static constexpr int kWaveM = Config::tile_m / Config::wave_m, kWaveN = Config::tile_n / Config::wave_n;
    static_assert(kWaveM % Config::warp_m == 0 && kWaveN % Config::warp_n == 0, "a wave has whole warp tiles");
    static constexpr int kTilesM = kWaveM / Config::warp_m, kTilesN = kWaveN / Config::warp_n;
    static constexpr int kGroupsM = kTilesM * kRows / kFour, kGroupsN = kTilesN * kCols / kFour;

    float sums[kTilesM][kTilesN][kRows][kCols] = {};
    int warp = warp_index();
    int first_row = warp / Config::wave_n * kWaveM;  // of the wave, in the tile
    int first_col = warp % Config::wave_n * kWaveN;
    int lane_m = lane_index() / kLanesN, lane_n = lane_index() % kLanesN;

    struct Operands {
        Four rows[kGroupsM], cols[kGroupsN];
    };
    static constexpr int kUnrolled = kBankChunks;  // steps of k, after which the exchange of chunks repeats
    static_assert(Config::tile_k % kUnrolled == 0, "k is taken in eights");

    // Step k of eight, of which the lane's first groups are at a and b.
    static TILEWISE_DEVICE void fetch(SharedAddress a, SharedAddress b, int k, Operands& to) {
        TILEWISE_UNROLL
        for (int g = 0; g < kGroupsM; ++g) Rows::fetch(a, g, k, to.rows[g]);
        TILEWISE_UNROLL
        for (int g = 0; g < kGroupsN; ++g) Cols::fetch(b, g, k, to.cols[g]);
    }

    Operands operands[2];  // of this step of k and the next; an even number of steps makes a tile

    TILEWISE_DEVICE SharedAddress own_rows(SharedAddress tile) const { return tile + Rows::start(first_row, lane_m); }
    TILEWISE_DEVICE SharedAddress own_cols(SharedAddress tile) const { return tile + Cols::start(first_col, lane_n); }

    TILEWISE_DEVICE float& sum(int i) {
        constexpr int kEach = kRows * kCols;
        return sums[i / kEach / kTilesN][i / kEach % kTilesN][i % kEach / kCols][i % kCols];
    }

    // The first step of a tile, ahead of its multiplication.
    TILEWISE_DEVICE void fetch_first(SharedAddress tile_a, SharedAddress tile_b) {
        fetch(own_rows(tile_a), own_cols(tile_b), 0, operands[0]);
    }
    TILEWISE_DEVICE void multiply(SharedAddress tile_a, SharedAddress tile_b) {
        fetch_first(tile_a, tile_b);
        multiply_fetched(tile_a, tile_b, [] {});
    }
    // A tile whose first step has been fetched. `next` makes the next tile ready and fetches its first step, while this one's
    // last is multiplied.
    static constexpr bool kFetchesFirst = true;
    template <class Next>
    TILEWISE_DEVICE void multiply_fetched(SharedAddress tile_a, SharedAddress tile_b, Next&& next) {
        SharedAddress a = own_rows(tile_a), b = own_cols(tile_b);
        constexpr u32 eight_a = kUnrolled * Config::tile_m * sizeof(float),
                      eight_b = kUnrolled * Config::tile_n * sizeof(float);
        TILEWISE_ROLLED
        for (int first = 0; first < Config::tile_k; first += kUnrolled) {
            TILEWISE_UNROLL
            for (int k = 0; k < kUnrolled; ++k) {
                if (k + 1 < kUnrolled) {
                    fetch(a, b, k + 1, operands[(k + 1) % 2]);
                } else if (first + kUnrolled < Config::tile_k) {
                    fetch(a + eight_a, b + eight_b, 0, operands[0]);
                } else {
                    next();
                }
                multiply_add(operands[k % 2]);
            }
            a += eight_a, b += eight_b;
        }
    }
    TILEWISE_DEVICE void multiply_add(const Operands& o) {
        TILEWISE_UNROLL
        for (int i = 0; i < kTilesM * kRows; ++i) {
            TILEWISE_UNROLL
            for (int j = 0; j < kTilesN * kCols; ++j) {
                sums[i / kRows][j / kCols][i % kRows][j % kCols] +=
                    o.rows[i / kFour][i % kFour] * o.cols[j / kFour][j % kFour];
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

    static constexpr int kRun = kFour;
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
