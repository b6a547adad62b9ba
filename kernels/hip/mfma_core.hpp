// SPDX-License-Identifier: MIT
// The arithmetic of a wave with MFMA: sums of (tile_m / wave_m) x (tile_n / wave_n) in registers, products of tiles in shared memory in
// steps of 16 x 16 or 32 x 32, 64 lanes' chunks of 16 bytes deep. Tiles lie along k (turned_tile.hpp), or are turned around as they are
// read (crossed_tile.hpp). The columns are multiplied by the rows, so that four sums of a lane are neighbours along n. 8-bit floats are
// widened to fp16, which has them all, where the config does not say that the chip multiplies them: gfx90a has no such products, and
// those of gfx942 are of another kind. Waves may share out the k of a tile too: each multiplies a part of its steps, and the first adds
// up the sums of all.
#pragma once
#include "../gpu/drain.hpp"
#include "../gpu/mainloop.hpp"
#include "crossed_tile.hpp"
#include "turned_tile.hpp"
#include "wave_region.hpp"
#include "widen.hpp"

namespace tilewise::gpu {

template <int rows, int cols>
requires(rows > 0 && kArchLanes == 64) struct DrainRegion<rows, cols> : hip::WaveRegion<rows, cols> {
};

}  // namespace tilewise::gpu

namespace tilewise::hip {

template <class Config>
TILEWISE_DEVICE constexpr bool multiplies_small_floats() {
    if constexpr (requires { Config::small_float_products; }) {
        return Config::small_float_products && kIs8BitFloat<typename Config::A>;
    } else {
        return false;
    }
}

template <class Config>
struct MfmaCore {
    using Shape = BlockShape<Config>;
    using A = typename Shape::A;
    using B = typename Shape::B;
    using ElementA = typename Config::A;
    using ElementB = typename Config::B;
    using Sum = SumOf<ElementA>;
    static constexpr int kSide = Config::warp_m;  // of an instruction's square of sums
    static_assert(kSide == Config::warp_n && (kSide == 16 || kSide == 32), "MFMA is 16 x 16 or 32 x 32");
    static_assert(ElementA::bytes == ElementB::bytes, "operands of one size");
    static constexpr int kDepthLanes = kArchLanes / kSide;  // lanes side by side along k
    static constexpr int kStepK = kDepthLanes * kChunkBytes / ElementA::bytes;
    static constexpr int kWaveM = Config::tile_m / Config::wave_m, kWaveN = Config::tile_n / Config::wave_n;
    static constexpr int kWaveK = Config::tile_k / Config::wave_k;
    static_assert(kWaveM % kSide == 0 && kWaveN % kSide == 0 && kWaveK % kStepK == 0,
                  "a wave's share of the tile is whole steps");
    static constexpr int kStepsM = kWaveM / kSide, kStepsN = kWaveN / kSide, kStepsK = kWaveK / kStepK;
    static constexpr int kTileWaves = Config::wave_m * Config::wave_n;  // of one part of k

    // Runs of four sums of a lane are neighbours along n; all lanes together have kRunCols columns of each.
    static constexpr int kRun = 4, kSums = kSide * kSide / kArchLanes, kRuns = kSums / kRun;
    static constexpr int kRunCols = kRun * kDepthLanes;
    using Square = Sums<Sum, kSide>;

    Square sums[kStepsM][kStepsN] = {};
    int warp = warp_index() % kTileWaves, part = warp_index() / kTileWaves;
    int first_row = warp / Config::wave_n * kWaveM;  // of the wave, in the tile
    int first_col = warp % Config::wave_n * kWaveN;

    // In a tile the lane's first chunk of the wave's part of k. Those of the squares after it lie whole turns of the exchange further on,
    // and those of a later step of k where the bits of their number are exchanged too: lines are powers of two of chunks.
    template <class Tile>
    TILEWISE_DEVICE u32 chunk_place(int first) const {
        const int step = Config::wave_k == 1 ? 0 : part * kStepsK;
        if constexpr (Tile::kAlongK) {
            return Tile::Layout::offset(first + lane_index() % kSide, step * kDepthLanes + lane_index() / kSide);
        } else {
            return Tile::Layout::at(Tile::Layout::template lane_place<kSide>(first, lane_index()), 0, step * kStepK);
        }
    }
    u32 row_place = chunk_place<A>(first_row), column_place = chunk_place<B>(first_col);

    // Instructions take the halves of what a lane has.
    static constexpr bool kHalves = kSame<ElementA, Int8> || multiplies_small_floats<Config>();
    template <class Tile>
    static TILEWISE_DEVICE Packet<16> fetch(SharedAddress place, int square, int k) {
        if constexpr (!Tile::kAlongK) {
            return load_crossed<typename Tile::Layout>(place, square * kSide, k * kStepK);
        }
        constexpr int kSquareBytes = kSide * Config::tile_k * ElementA::bytes;
        const SharedAddress at = (place ^ u32(k * kDepthLanes * kChunkBytes)) + u32(square * kSquareBytes);
        return kHalves ? load_whole(at) : load_shared<16>(at);
    }
    // The operands of a turn: one step of k, or two where an instruction takes them together.
    static constexpr bool kNative = multiplies_small_floats<Config>();
    static constexpr int kJoined = kNative && kStepsK % 2 == 0 ? 2 : 1, kTurns = kStepsK / kJoined;
    struct Operands {
        Packet<16> rows[kStepsM][kJoined], columns[kStepsN][kJoined];
    };
    TILEWISE_DEVICE void fetch(Operands& to, SharedAddress a, SharedAddress b, int turn) const {
        TILEWISE_UNROLL
        for (int k = 0; k < kJoined; ++k) {
            TILEWISE_UNROLL
            for (int i = 0; i < kStepsM; ++i) to.rows[i][k] = fetch<A>(a + row_place, i, turn * kJoined + k);
            TILEWISE_UNROLL
            for (int j = 0; j < kStepsN; ++j) to.columns[j][k] = fetch<B>(b + column_place, j, turn * kJoined + k);
        }
    }
    TILEWISE_DEVICE void multiply(const Operands& of) {
        if constexpr (kIs8BitFloat<ElementA> && !kNative) return multiply_widened(of);
        TILEWISE_UNROLL
        for (int i = 0; i < kStepsM; ++i) {
            TILEWISE_UNROLL
            for (int j = 0; j < kStepsN; ++j) {
                if constexpr (kNative) {
                    multiply_small_floats<ElementB, ElementA, kSide>(sums[i][j], of.columns[j], of.rows[i]);
                } else if constexpr (!kIs8BitFloat<ElementA>) {
                    multiply_matrices<ElementA, kSide>(sums[i][j], of.columns[j][0], of.rows[i][0]);
                }
            }
        }
    }

    static constexpr bool kFetchesFirst = false;  // a tile ahead
    TILEWISE_DEVICE void multiply(SharedAddress a, SharedAddress b) {
        TILEWISE_UNROLL
        for (int turn = 0; turn < kTurns; ++turn) {
            Operands operands;
            fetch(operands, a, b, turn);
            multiply(operands);
        }
    }
    // The same with the operands of a turn fetched before those of the turn before it are multiplied.
    TILEWISE_DEVICE void multiply_ahead(SharedAddress a, SharedAddress b) {
        Operands operands[2];
        fetch(operands[0], a, b, 0);
        TILEWISE_UNROLL
        for (int turn = 0; turn < kTurns; ++turn) {
            if (turn + 1 < kTurns) fetch(operands[(turn + 1) % 2], a, b, turn + 1);
            multiply(operands[turn % 2]);
        }
    }
    // All operands of a tile.
    struct Tile {
        Operands turn[kTurns];
    };
    TILEWISE_DEVICE void fetch_tile(Tile& to, SharedAddress a, SharedAddress b) const {
        TILEWISE_UNROLL
        for (int t = 0; t < kTurns; ++t) fetch(to.turn[t], a, b, t);
    }
    TILEWISE_DEVICE void multiply_tile(const Tile& of) {
        TILEWISE_UNROLL
        for (int t = 0; t < kTurns; ++t) multiply(of.turn[t]);
    }
    TILEWISE_DEVICE void multiply_widened(const Operands& of) {
        Packet<16> wide_rows[kStepsM][2];
        TILEWISE_UNROLL
        for (int i = 0; i < kStepsM; ++i) widen<ElementA>(of.rows[i][0], wide_rows[i]);
        TILEWISE_UNROLL
        for (int j = 0; j < kStepsN; ++j) {
            Packet<16> wide_columns[2];
            widen<ElementB>(of.columns[j][0], wide_columns);
            TILEWISE_UNROLL
            for (int i = 0; i < kStepsM; ++i) {
                TILEWISE_UNROLL
                for (int half = 0; half < 2; ++half) {
                    multiply_matrices<Fp16, kSide>(sums[i][j], wide_columns[half], wide_rows[i][half]);
                }
            }
            keep_order();
        }
    }

    // Waves that share out k: the first adds up the sums of all, in order. True where they are this wave's.
    static constexpr int kWaveSums = kStepsM * kStepsN * kSums;
    static constexpr int kWaveSumBytes = kWaveSums * kArchLanes * int(sizeof(Sum));
    TILEWISE_DEVICE bool add_waves(SharedAddress shared) {
        static_assert((Config::wave_k - 1) * kTileWaves * kWaveSumBytes <= Config::shared_bytes,
                      "sums of waves in the operands' buffers");
        const SharedAddress own = shared + u32(warp * kWaveSumBytes + lane_index() * kChunkBytes);
        const auto place = [&](int wave, int i) {
            return own + u32((wave - 1) * kTileWaves * kWaveSumBytes + i / kRun * kArchLanes * kChunkBytes);
        };
        if (part > 0) {
            TILEWISE_UNROLL
            for (int i = 0; i < kWaveSums; i += kRun) {
                Packet<16> four;
                TILEWISE_UNROLL
                for (int r = 0; r < kRun; ++r) four.words[r] = __builtin_bit_cast(u32, sum(i + r));
                store_shared<16>(place(part, i), four);
            }
        }
        sync_block();
        if (part == 0) {
            TILEWISE_ROLLED
            for (int wave = 1; wave < Config::wave_k; ++wave) {
                TILEWISE_UNROLL
                for (int i = 0; i < kWaveSums; i += kRun) {
                    const Packet<16> four = load_shared<16>(place(wave, i));
                    TILEWISE_UNROLL
                    for (int r = 0; r < kRun; ++r) sum(i + r) += __builtin_bit_cast(Sum, four.words[r]);
                }
            }
        }
        sync_block();  // results leave by the same shared memory
        return part == 0;
    }

    // Belongs to run number r of a row of squares.
    static TILEWISE_DEVICE int lane_row() { return lane_index() % kSide; }
    static TILEWISE_DEVICE int run_col(int r) { return r * kRunCols + lane_index() / kSide * kRun; }

    static constexpr int kRegionRows = kSide, kRowStep = 1;
    static constexpr int kRegionCols = region_cols(kWaveN, kRegionRows, Shape::kWarps, Config::shared_bytes);
    static_assert(kRegionCols % kRunCols == 0, "a pass takes whole runs");
    static constexpr int kPassesN = kWaveN / kRegionCols, kPasses = kStepsM * kPassesN;
    static constexpr int kPassRuns = kRegionCols / kRunCols;
    using Region = DrainRegion<kRegionRows, kRegionCols>;

    TILEWISE_DEVICE int pass_row(int pass) const { return first_row + pass / kPassesN * kSide; }
    TILEWISE_DEVICE int pass_col(int pass) const { return first_col + pass % kPassesN * kRegionCols; }
    TILEWISE_DEVICE void put(int pass, SharedAddress region) const {
        TILEWISE_UNROLL
        for (int p = 0; p < kPasses; ++p) {  // registers have no addresses: every pass has its own code
            if (p != pass) continue;
            TILEWISE_UNROLL
            for (int r = 0; r < kPassRuns; ++r) {
                const int run = p % kPassesN * kPassRuns + r;
                Sum four[kRun];
                get_run(p / kPassesN, run, four);
                Packet<16> words;
                TILEWISE_UNROLL
                for (int i = 0; i < kRun; ++i) words.words[i] = __builtin_bit_cast(u32, four[i]);
                store_shared<16>(region + Region::at(lane_row(), run_col(r)), words);
            }
        }
    }
    // Run number `run` of the squares in row i.
    TILEWISE_DEVICE void get_run(int i, int run, Sum (&to)[kRun]) const {
        const Square& square = sums[i][run / kRuns];
        TILEWISE_UNROLL
        for (int r = 0; r < kRun; ++r) to[r] = square[run % kRuns * kRun + r];
    }

    TILEWISE_DEVICE Sum& sum(int i) { return reinterpret_cast<Sum*>(&sums[0][0])[i]; }

    template <class F>
    TILEWISE_DEVICE void visit(F&& f) const {
        TILEWISE_UNROLL
        for (int i = 0; i < kStepsM; ++i) {
            TILEWISE_UNROLL
            for (int run = 0; run < kStepsN * kRuns; ++run) {
                Sum four[kRun];
                get_run(i, run, four);
                f(first_row + i * kSide + lane_row(), first_col + run_col(run), four);
            }
        }
    }
};

}  // namespace tilewise::hip
