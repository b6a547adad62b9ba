// SPDX-License-Identifier: MIT
// The arithmetic of a warp with mma.sync: sums of (tile_m / wave_m) x (tile_n / wave_n) in registers, products of tiles
// in shared memory in steps of 16 x 8 x 32 bytes. ldmatrix fetches the operands whichever way they lie: tiles along k as
// they are, tiles of 16 bits along m or n transposed; fp32 along m or n is fetched word by word (8 bits come along k
// always, transposed_tile.hpp). The next step of k is fetched ahead of the arithmetic of this one.
#pragma once
#include "../gpu/drain.hpp"
#include "../gpu/mainloop.hpp"
#include "tf32_halves.hpp"

namespace tilewise::cuda {

template <class Config>
struct MmaCore {
    using Shape = BlockShape<Config>;
    using A = typename Shape::A;
    using B = typename Shape::B;
    using ElementA = typename Config::A;
    using ElementB = typename Config::B;
    using Sum = SumOf<ElementA>;
    static constexpr int kStepBytes = 32, kStepChunks = kStepBytes / kChunkBytes;
    static constexpr int kStepM = 16, kStepN = 8, kStepK = kStepBytes / ElementA::bytes, kMatrix = 8;
    static_assert(Config::warp_m == kStepM && Config::warp_n == kStepN && Config::warp_k == kStepK,
                  "mma.sync is 16 x 8 x 32 bytes");
    static_assert(ElementA::bytes == ElementB::bytes, "operands of one size");
    static_assert(Config::wave_k == 1, "waves do not share out k");
    static constexpr int kWaveM = Config::tile_m / Config::wave_m, kWaveN = Config::tile_n / Config::wave_n;
    static_assert(kWaveM % kStepM == 0 && kWaveN % (2 * kStepN) == 0 && Config::tile_k % kStepK == 0,
                  "a wave's share of the tile is whole steps, in n pairs of them");
    static constexpr int kStepsM = kWaveM / kStepM, kStepsN = kWaveN / kStepN, kStepsK = Config::tile_k / kStepK;

    Sum sums[kStepsM][kStepsN][4] = {};
    int warp = warp_index();
    int first_row = warp / Config::wave_n * kWaveM;  // of the wave, in the tile
    int first_col = warp % Config::wave_n * kWaveN;

    struct Operands {
        u32 a[kStepsM][4];
        u32 b[kStepsN / 2][4];  // of two steps of n: k 0-7 and 8-15 of the first, then of the second
    };

    // Rows (or columns) `first` to first + 15 at step k of an operand, as four matrices of 8 x 8. Two of the matrices
    // follow the first along the extent, two along k: the order of A's registers has the extent first, that of B's k.
    template <class Tile, bool extent_first>
    static TILEWISE_DEVICE void fetch(SharedAddress tile, int first, int k, u32 (&to)[4]) {
        const int lane = lane_index(), inner = lane % kMatrix, low = lane / kMatrix % 2, high = lane / kMatrix / 2;
        const int along_extent = extent_first ? low : high, along_k = extent_first ? high : low;
        if constexpr (Tile::kAlongK) {
            const int line = first + along_extent * kMatrix + inner, chunk = k * kStepChunks + along_k;
            load_matrices<false>(tile + Tile::Layout::offset(line, chunk), to);
        } else if constexpr (ElementA::bytes == 4) {
            fetch_words<Tile, extent_first>(tile, first, k, to);
        } else {
            const int line = k * kStepK + along_k * kMatrix + inner, chunk = first / kMatrix + along_extent;
            load_matrices<true>(tile + Tile::Layout::offset(line, chunk), to);
        }
    }
    // The same of tiles of fp32 that lie along m or n.
    template <class Tile, bool extent_first>
    static TILEWISE_DEVICE void fetch_words(SharedAddress tile, int first, int k, u32 (&to)[4]) {
        const int lane = lane_index();
        TILEWISE_UNROLL
        for (int i = 0; i < 4; ++i) {
            const int along_extent = extent_first ? i % 2 : i / 2, along_k = extent_first ? i / 2 : i % 2;
            const int line = k * kStepK + along_k * (kStepK / 2) + lane % 4;
            const int element = first + along_extent * kMatrix + lane / 4;
            to[i] = bits_of(load_shared_float(tile + Tile::Layout::byte_offset(line, element * 4)));
        }
    }
    TILEWISE_DEVICE void fetch_rows(SharedAddress a, int k, u32 (&to)[kStepsM][4]) const {
        TILEWISE_UNROLL
        for (int i = 0; i < kStepsM; ++i) fetch<A, true>(a, first_row + i * kStepM, k, to[i]);
    }
    TILEWISE_DEVICE void fetch_all(SharedAddress a, SharedAddress b, int k, Operands& to) const {
        fetch_rows(a, k, to.a);
        TILEWISE_UNROLL
        for (int j = 0; j < kStepsN / 2; ++j) fetch<B, false>(b, first_col + j * 2 * kStepN, k, to.b[j]);
    }

    // Two sets of operands where registers allow it (a thread has 255, and about 40 hold addresses and the like).
    static constexpr int kOperandRegisters = kStepsM * 4 + kStepsN * 2, kMostRegisters = 216;
    // Hopper makes fp16 of 8-bit floats, which takes more of them.
    static constexpr bool kFetchAhead =
        !kIs8BitFloat<ElementA> &&
        Shape::kSumRegisters + Shape::kWayRegisters + 2 * kOperandRegisters <= kMostRegisters;

    static constexpr bool kFetchesFirst = false;  // a tile ahead
    TILEWISE_DEVICE void multiply(SharedAddress a, SharedAddress b) {
        if constexpr (kFetchAhead) {
            Operands operands[2];
            fetch_all(a, b, 0, operands[0]);
            TILEWISE_UNROLL
            for (int k = 0; k < kStepsK; ++k) {
                if (k + 1 < kStepsK) fetch_all(a, b, k + 1, operands[(k + 1) % 2]);
                TILEWISE_UNROLL
                for (int j = 0; j < kStepsN / 2; ++j) multiply_columns(operands[k % 2].a, operands[k % 2].b[j], j);
            }
        } else {
            TILEWISE_UNROLL
            for (int k = 0; k < kStepsK; ++k) {
                u32 rows[kStepsM][4];
                fetch_rows(a, k, rows);
                TILEWISE_UNROLL
                for (int j = 0; j < kStepsN / 2; ++j) {
                    u32 columns[4];
                    fetch<B, false>(b, first_col + j * 2 * kStepN, k, columns);
                    multiply_columns(rows, columns, j);
                }
            }
        }
    }
    // Two steps of n: pair number j of the wave's columns.
    TILEWISE_DEVICE void multiply_columns(const u32 (&rows)[kStepsM][4], const u32 (&columns)[4], int j) {
        TILEWISE_UNROLL
        for (int i = 0; i < kStepsM; ++i) {
            multiply_step(sums[i][2 * j], rows[i], columns[0], columns[1]);
            multiply_step(sums[i][2 * j + 1], rows[i], columns[2], columns[3]);
        }
    }

    static TILEWISE_DEVICE void multiply_step(Sum (&sum)[4], const u32 (&a)[4], u32 b0, u32 b1) {
        if constexpr (kSame<ElementA, Fp32>) {
            const u32 b[2] = {b0, b1};
            multiply_tf32<Config::math == Math::tf32x3>(sum, a, b);
        } else {
            multiply_add<ElementA, ElementB>(sum, a, b0, b1);
        }
    }
    // fp32 rounded to tf32. In three products it is cut, and the rests count too, but for their product with each other.
    template <bool three>
    static TILEWISE_DEVICE void multiply_tf32(float (&sum)[4], const u32 (&a)[4], const u32 (&b)[2]) {
        u32 high_a[4], low_a[4], high_b[2], low_b[2];
        TILEWISE_UNROLL
        for (int i = 0; i < 4; ++i) {
            high_a[i] = three ? cut_tf32(a[i]) : round_tf32(a[i]);
            if constexpr (three) low_a[i] = rest_of(a[i], high_a[i]);
        }
        TILEWISE_UNROLL
        for (int i = 0; i < 2; ++i) {
            high_b[i] = three ? cut_tf32(b[i]) : round_tf32(b[i]);
            if constexpr (three) low_b[i] = rest_of(b[i], high_b[i]);
        }
        if constexpr (three) {
            multiply_add<Fp32, Fp32>(sum, low_a, high_b[0], high_b[1]);
            multiply_add<Fp32, Fp32>(sum, high_a, low_b[0], low_b[1]);
        }
        multiply_add<Fp32, Fp32>(sum, high_a, high_b[0], high_b[1]);
    }

    // Lane l has of every step rows l / 4 and l / 4 + 8, in each the columns 2 (l % 4) and the next.
    static TILEWISE_DEVICE int lane_row() { return lane_index() / 4; }
    static TILEWISE_DEVICE int lane_col() { return lane_index() % 4 * 2; }

    static constexpr int kRegionRows = kStepM, kRowStep = 1;
    static constexpr int kRegionCols = region_cols(kWaveN, kRegionRows, Shape::kWarps, Config::shared_bytes);
    static constexpr int kPassesN = kWaveN / kRegionCols, kPasses = kStepsM * kPassesN;
    static constexpr int kPassStepsN = kRegionCols / kStepN;
    static_assert(kRegionCols % kStepN == 0, "a pass takes whole steps");
    using Region = DrainRegion<kRegionRows, kRegionCols>;

    TILEWISE_DEVICE int pass_row(int pass) const { return first_row + pass / kPassesN * kStepM; }
    TILEWISE_DEVICE int pass_col(int pass) const { return first_col + pass % kPassesN * kRegionCols; }
    TILEWISE_DEVICE void put(int pass, SharedAddress region) const {
        TILEWISE_UNROLL
        for (int p = 0; p < kPasses; ++p) {  // registers have no addresses: every pass has its own code
            if (p != pass) continue;
            TILEWISE_UNROLL
            for (int j = 0; j < kPassStepsN; ++j) {
                const Sum(&sum)[4] = sums[p / kPassesN][p % kPassesN * kPassStepsN + j];
                const int row = lane_row(), col = j * kStepN + lane_col();
                store_shared_float2(region + Region::at(row, col), word(sum[0]), word(sum[1]));
                store_shared_float2(region + Region::at(row + kMatrix, col), word(sum[2]), word(sum[3]));
            }
        }
    }

    TILEWISE_DEVICE Sum& sum(int i) { return sums[i / (4 * kStepsN)][i / 4 % kStepsN][i % 4]; }

    static TILEWISE_DEVICE float word(Sum sum) { return __builtin_bit_cast(float, sum); }

    static constexpr int kRun = 2;
    template <class F>
    TILEWISE_DEVICE void visit(F&& f) const {
        TILEWISE_UNROLL
        for (int i = 0; i < kStepsM; ++i) {
            TILEWISE_UNROLL
            for (int j = 0; j < kStepsN; ++j) {
                const int row = first_row + i * kStepM + lane_row(), col = first_col + j * kStepN + lane_col();
                f(row, col, {sums[i][j][0], sums[i][j][1]});
                f(row + kMatrix, col, {sums[i][j][2], sums[i][j][3]});
            }
        }
    }
};

}  // namespace tilewise::cuda
