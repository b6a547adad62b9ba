// SPDX-License-Identifier: MIT
// The arithmetic of a warp on fp32 operands in the fp64 matrix units (Hopper), which are as fast as its fp32 multipliers and need
// far fewer instructions and registers read: products of fp32 are exact there, sums are kept in fp64 and rounded once, at the end.
// Sums of (tile_m / wave_m) x (tile_n / wave_n) in registers, products of tiles in shared memory in steps of 16 x 8 x 16. Both
// operands lie along k. A lane reads four neighbours along k at a time; which of a step's k they are counted as is the same for
// both operands, so that it does not matter.
#pragma once
#include "../../gpu/drain.hpp"
#include "../../gpu/mainloop.hpp"

namespace tilewise::cuda::fp64_gemm {

template <class Config>
struct Fp64Core {
    using Shape = BlockShape<Config>;
    using A = typename Shape::A;
    using B = typename Shape::B;
    static constexpr int kStepM = 16, kStepN = 8, kStepK = 16, kFour = 4, kMatrix = 8;
    static_assert(kSame<typename Config::A, Fp32> && kSame<typename Config::B, Fp32>, "operands of fp32");
    static_assert(Config::warp_m == kStepM && Config::warp_n == kStepN && Config::warp_k == 1);
    static_assert(Config::math == Math::strict && Config::wave_k == 1);
    static_assert(A::kAlongK && B::kAlongK, "operands along k");
    static constexpr int kWaveM = Config::tile_m / Config::wave_m, kWaveN = Config::tile_n / Config::wave_n;
    static_assert(kWaveM % kStepM == 0 && kWaveN % kStepN == 0 && Config::tile_k % (2 * kStepK) == 0);
    static constexpr int kStepsM = kWaveM / kStepM, kStepsN = kWaveN / kStepN, kStepsK = Config::tile_k / kStepK;

    double sums[kStepsM][kStepsN][4] = {};
    int warp = warp_index() % Shape::kWarps;
    int first_row = warp / Config::wave_n * kWaveM;  // of the wave, in the tile
    int first_col = warp % Config::wave_n * kWaveN;

    // Row (or column) number i of eight of a step is this one of the tile's: eight lanes whose accesses go together then read
    // two lines four apart, which fill all banks.
    static TILEWISE_DEVICE constexpr int placed(int i) { return i % 2 * 4 + i / 2; }

    // Four k of a lane's line of eight, from step k on.
    template <class Tile>
    static TILEWISE_DEVICE void fetch(SharedAddress tile, int first, int k, double (&to)[kFour]) {
        const int line = first + placed(lane_index() / 4), chunk = k * (kStepK / kFour) + lane_index() % 4;
        float four[kFour];
        load_shared_float4(tile + Tile::Layout::offset(u32(line), u32(chunk)), four);
        TILEWISE_UNROLL
        for (int i = 0; i < kFour; ++i) to[i] = double(four[i]);
    }

    static constexpr bool kFetchesFirst = false;  // a tile ahead
    TILEWISE_DEVICE void multiply(SharedAddress a, SharedAddress b) {
        TILEWISE_ROLLED
        for (int k = 0; k < kStepsK; ++k) {
            double columns[kStepsN][kFour];
            TILEWISE_UNROLL
            for (int j = 0; j < kStepsN; ++j) fetch<B>(b, first_col + j * kStepN, k, columns[j]);
            TILEWISE_UNROLL
            for (int i = 0; i < kStepsM; ++i) {
                double low[kFour], high[kFour];
                fetch<A>(a, first_row + i * kStepM, k, low);
                fetch<A>(a, first_row + i * kStepM + kMatrix, k, high);
                const double rows[8] = {low[0], high[0], low[1], high[1], low[2], high[2], low[3], high[3]};
                TILEWISE_UNROLL
                for (int j = 0; j < kStepsN; ++j) multiply_add_fp64(sums[i][j], rows, columns[j]);
            }
        }
    }

    // A lane has two rows of every step, eight apart, in each two columns.
    static TILEWISE_DEVICE int lane_row() { return placed(lane_index() / 4); }
    static TILEWISE_DEVICE int lane_col(int i) { return placed(lane_index() % 4 * 2 + i); }

    static constexpr int kRegionRows = kStepM, kRowStep = 1;
    static constexpr int kRegionCols = region_cols(kWaveN, kRegionRows, Shape::kWarps, Config::shared_bytes);
    static constexpr int kPassesN = kWaveN / kRegionCols, kPasses = kStepsM * kPassesN;
    static constexpr int kPassStepsN = kRegionCols / kStepN;
    using Region = DrainRegion<kRegionRows, kRegionCols>;

    TILEWISE_DEVICE int pass_row(int pass) const { return first_row + pass / kPassesN * kStepM; }
    TILEWISE_DEVICE int pass_col(int pass) const { return first_col + pass % kPassesN * kRegionCols; }
    TILEWISE_DEVICE void put(int pass, SharedAddress region) const {
        TILEWISE_UNROLL
        for (int p = 0; p < kPasses; ++p) {  // registers have no addresses: every pass has its own code
            if (p != pass) continue;
            TILEWISE_UNROLL
            for (int j = 0; j < kPassStepsN; ++j) {
                TILEWISE_UNROLL
                for (int i = 0; i < 4; ++i) {
                    const int row = lane_row() + i / 2 * kMatrix, col = j * kStepN + lane_col(i % 2);
                    store_shared_float(region + Region::at(u32(row), u32(col)),
                                       float(sums[p / kPassesN][p % kPassesN * kPassStepsN + j][i]));
                }
            }
        }
    }

    static constexpr int kRun = 1;
    template <class F>
    TILEWISE_DEVICE void visit(F&& f) const {
        TILEWISE_UNROLL
        for (int i = 0; i < kStepsM; ++i) {
            TILEWISE_UNROLL
            for (int j = 0; j < kStepsN; ++j) {
                TILEWISE_UNROLL
                for (int n = 0; n < 4; ++n) {
                    const float value[1] = {float(sums[i][j][n])};
                    f(first_row + i * kStepM + lane_row() + n / 2 * kMatrix, first_col + j * kStepN + lane_col(n % 2),
                      value);
                }
            }
        }
    }
};

}  // namespace tilewise::cuda::fp64_gemm
