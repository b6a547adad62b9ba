// SPDX-License-Identifier: MIT
// The arithmetic of a warp in plain fp32: a warp tile of 32 x 64 or 16 x 16 is shared out among 4 x 8 lanes, one of 32 x 32
// among 8 x 4; a wave has as many warp tiles as its share of the block's tile, or, where waves share out k, the same tile at other
// steps of k, and the first of them adds up all sums. Operands lie in
// shared memory as they do in global memory (operand_tile.hpp), along k or along m and n: either way one access of a lane
// brings four numbers, four steps of k of one row, or four rows of one step. So k is taken in fours: the columns of four
// steps are in registers, and the accesses of the rows follow one by one, each good for 4 x (columns of a lane) products. The
// next two accesses of rows, and the columns of the next four steps, are on their way meanwhile, also across tiles.
#pragma once
#include "drain.hpp"
#include "mainloop.hpp"

namespace tilewise::gpu {

inline constexpr int kFour = 4;  // floats of an access, and steps of k that are taken together
using Four = float[kFour];

// The rows (or columns) of a wave that a lane has, `count` of them. Of a tile along k every lanes-th; of one along the extent
// groups of four, a group of every lane after the other. A wave's first row is a multiple of 32.
template <class Tile, int lanes, int count>
struct LaneShare {
    static constexpr bool kAlongK = Tile::kAlongK;
    static_assert(kAlongK || count % kFour == 0);
    static_assert(lanes == kBankChunks || lanes * 2 == kBankChunks,
                  "lanes side by side fill all banks, or half of them");
    static_assert(kAlongK || Tile::Layout::kChunks >= kBankChunks, "a line fills all banks");
    static constexpr u32 kLineBytes = Tile::Layout::kChunks * kChunkBytes;
    static constexpr int kLaneStep = kAlongK ? 1 : kFour;  // from lane to lane
    static constexpr int kRun = kAlongK ? 1 : kFour;       // neighbours of a lane that are neighbours in the tile

    static TILEWISE_DEVICE constexpr int first_of(int i) {  // of lane 0
        return kAlongK ? i * lanes : i / kFour * kFour * lanes + i % kFour;
    }
    static TILEWISE_DEVICE int index(int lane, int i) { return first_of(i) + lane * kLaneStep; }

    // Which number an access brings: access u holds, at place p, row row_of(u, p) of step step_of(u, p); and the other way.
    static TILEWISE_DEVICE constexpr int row_of(int u, int p) { return kAlongK ? u : u / kFour * kFour + p; }
    static TILEWISE_DEVICE constexpr int step_of(int u, int p) { return kAlongK ? p : u % kFour; }
    static TILEWISE_DEVICE constexpr int access_of(int i, int step) { return kAlongK ? i : i / kFour * kFour + step; }
    static TILEWISE_DEVICE constexpr int place_of(int i, int step) { return kAlongK ? step : i % kFour; }

    // Lines along k: the exchange of chunks depends on the line's number in eight, so that there are one or two kinds of lines.
    static constexpr int kKinds = kAlongK ? kBankChunks / lanes : 1;
    struct Place {
        SharedAddress at[kKinds];
    };
    static constexpr u32 kEightLines = kBankChunks * kLineBytes;
    // A wave begins at its first row, and its first eight of k.
    static TILEWISE_DEVICE Place start(SharedAddress tile, int first, int lane, int eight) {
        Place place;
        if constexpr (kAlongK) {
            TILEWISE_UNROLL
            for (int i = 0; i < kKinds; ++i) {
                place.at[i] = tile + Tile::Layout::offset(u32(first + lane + i * lanes), u32(eight * 2));
            }
        } else {
            place.at[0] = tile + u32(first + lane * kFour) * u32(sizeof(float)) + u32(eight) * kEightLines;
        }
        return place;
    }
    // Eights of k further on.
    static TILEWISE_DEVICE Place eights_on(const Place& place, int eights) {
        constexpr u32 two_chunks = 2 * kChunkBytes;
        Place on;
        TILEWISE_UNROLL
        for (int i = 0; i < kKinds; ++i) {
            on.at[i] = kAlongK ? place.at[i] ^ (u32(eights) * two_chunks) : place.at[i] + u32(eights) * kEightLines;
        }
        return on;
    }
    // Access u of the first or second four of eight steps of k: the place that Layout gives to its chunk.
    static TILEWISE_DEVICE void fetch(const Place& place, int half, int u, Four& to) {
        if constexpr (kAlongK) {
            const SharedAddress exchanged = place.at[u % kKinds] ^ u32(half * kChunkBytes);
            load_shared_float4(exchanged + u32(u / kKinds * kKinds * lanes) * kLineBytes, to);
        } else {
            const int k = half * kFour + u % kFour, group = u / kFour;
            const SharedAddress exchanged = place.at[0] ^ u32(k % lanes * kChunkBytes);
            load_shared_float4(exchanged + u32(k) * kLineBytes + u32((group ^ (k / lanes)) * lanes * kChunkBytes), to);
        }
    }
};

template <class Config>
struct SimtCore {
    using Shape = BlockShape<Config>;
    static_assert(kSame<typename Config::A, Fp32> && kSame<typename Config::B, Fp32>, "plain arithmetic is for fp32");
    static constexpr bool kSmall = Config::warp_m == 16 && Config::warp_n == 16;
    static_assert((kSmall || (Config::warp_m == 32 && (Config::warp_n == 64 || Config::warp_n == 32))) &&
                      Config::warp_k == 1,
                  "a warp tile of 32 x 64, 32 x 32 or 16 x 16");
    static_assert(Config::math == Math::strict, "no product is rounded");
    static constexpr int kLanesN = Config::warp_n == 32 ? 4 : 8, kLanesM = kArchLanes / kLanesN;
    static constexpr int kWaveM = Config::tile_m / Config::wave_m, kWaveN = Config::tile_n / Config::wave_n;
    static_assert(kWaveM % Config::warp_m == 0 && kWaveN % Config::warp_n == 0, "a wave has whole warp tiles");
    static constexpr int kRows = kWaveM / kLanesM, kCols = kWaveN / kLanesN;  // of a lane
    using Rows = LaneShare<typename Shape::A, kLanesM, kRows>;
    using Cols = LaneShare<typename Shape::B, kLanesN, kCols>;

    static constexpr int kTileWaves = Config::wave_m * Config::wave_n;  // of one part of k

    float sums[kRows][kCols] = {};
    int warp = warp_index() % kTileWaves, part = warp_index() / kTileWaves;
    int first_row = warp / Config::wave_n * kWaveM;  // of the wave, in the tile
    int first_col = warp % Config::wave_n * kWaveN;
    // Pairs of lanes have the same columns, so that the eight lanes whose accesses go together ask for half as many of them, and
    // those of two eights can be served at once.
    int lane_m = lane_index() % 2 + lane_index() / (2 * kLanesN) * 2, lane_n = lane_index() / 2 % kLanesN;

    static constexpr int kEight = 2 * kFour;  // steps of k, after which the exchange of chunks repeats
    static_assert(Config::tile_k % (kEight * Config::wave_k) == 0, "k is taken in eights");
    static constexpr int kEights = Config::tile_k / kEight / Config::wave_k;  // of a wave in a tile
    static_assert(Config::wave_k == 1 || (kEights & (kEights - 1)) == 0, "places of eights are found by XOR");
    static constexpr int kAhead = 2, kHeld = 4;  // accesses of rows on their way; places for them, a divisor of all
    static_assert(kRows % kHeld == 0 && kAhead < kHeld);
    Four rows[kHeld];
    Four cols[2][kCols];  // of this four steps of k and the next

    struct Places {
        typename Rows::Place rows;
        typename Cols::Place cols;
    };
    TILEWISE_DEVICE Places start(SharedAddress tile_a, SharedAddress tile_b) const {
        const int eight = Config::wave_k == 1 ? 0 : part * kEights;
        return {Rows::start(tile_a, first_row, lane_m, eight), Cols::start(tile_b, first_col, lane_n, eight)};
    }
    static TILEWISE_DEVICE Places eights_on(const Places& p, int eights) {
        return {Rows::eights_on(p.rows, eights), Cols::eights_on(p.cols, eights)};
    }

    TILEWISE_DEVICE float& sum(int i) { return sums[i / kCols][i % kCols]; }

    // Fetches what must be there before a tile's multiplication.
    TILEWISE_DEVICE void fetch_first(SharedAddress tile_a, SharedAddress tile_b) {
        const Places first = start(tile_a, tile_b);
        TILEWISE_UNROLL
        for (int u = 0; u < kCols; ++u) Cols::fetch(first.cols, 0, u, cols[0][u]);
        TILEWISE_UNROLL
        for (int u = 0; u < kAhead; ++u) Rows::fetch(first.rows, 0, u, rows[u]);
    }
    TILEWISE_DEVICE void multiply(SharedAddress tile_a, SharedAddress tile_b) {
        fetch_first(tile_a, tile_b);
        multiply_fetched(tile_a, tile_b, tile_a, tile_b, [] {});
    }
    // A tile whose first operands have been fetched; fetches those of the next tile, once `ready` has waited for it. Then the
    // last four steps of this one are still being fetched.
    static constexpr bool kFetchesFirst = true;
    template <class Ready>
    TILEWISE_DEVICE void multiply_fetched(SharedAddress tile_a, SharedAddress tile_b, SharedAddress next_a,
                                          SharedAddress next_b, Ready&& ready) {
        const Places first = start(tile_a, tile_b);
        Places here = first;
        TILEWISE_ROLLED
        for (int i = 0; i < kEights; ++i) {
            multiply_four<0>(here, here);
            Places next;
            if (i + 1 < kEights) {
                next = eights_on(first, i + 1);
            } else {
                ready();
                next = start(next_a, next_b);
            }
            multiply_four<1>(here, next);
            here = next;
        }
    }
    // The first or second four of eight steps of k; `next` is where the four after it are.
    template <int half>
    TILEWISE_DEVICE void multiply_four(const Places& here, const Places& next) {
        TILEWISE_UNROLL
        for (int u = 0; u < kRows; ++u) {
            if (u + kAhead < kRows) {
                Rows::fetch(here.rows, half, u + kAhead, rows[(u + kAhead) % kHeld]);
            } else {
                Rows::fetch(next.rows, 1 - half, u + kAhead - kRows, rows[(u + kAhead) % kHeld]);
            }
            // The next columns, evenly over the accesses of the rows.
            TILEWISE_UNROLL
            for (int c = u * kCols / kRows; c < (u + 1) * kCols / kRows; ++c) {
                Cols::fetch(next.cols, 1 - half, c, cols[1 - half][c]);
            }
            multiply_add(rows[u % kHeld], u, cols[half]);
        }
    }
    TILEWISE_DEVICE void multiply_add(const Four& row, int u, const Four (&columns)[kCols]) {
        if constexpr (Rows::kAlongK && Cols::kAlongK) return multiply_in_turns(row, u, columns);
        TILEWISE_UNROLL
        for (int p = 0; p < kFour; ++p) {
            const int i = Rows::row_of(u, p), step = Rows::step_of(u, p);
            TILEWISE_UNROLL
            for (int n = 0; n < kCols; ++n) {
                // Rows that are neighbours begin with the column that was used last.
                const int j = Rows::kAlongK || p % 2 == 0 ? n : kCols - 1 - n;
                sums[i][j] += row[p] * columns[Cols::access_of(j, step)][Cols::place_of(j, step)];
            }
        }
    }
    // Registers with even and with odd numbers are two banks, of which a scheduler reads one register each a cycle, and it keeps
    // one operand of each bank. Both operands of an even step of k lie in one bank, those of an odd step in the other. So half of
    // the columns take an even step and the other half the odd one after it, then they change over: two numbers of the row
    // are kept all along, and the two banks are read equally often. Every other row goes backwards, and begins with the
    // columns that were used last.
    TILEWISE_DEVICE void multiply_in_turns(const Four& row, int u, const Four (&columns)[kCols]) {
        constexpr int half = kCols / 2, total = kFour * kCols;
        static_assert(kCols % 2 == 0);
        TILEWISE_UNROLL
        for (int n = 0; n < total; ++n) {
            const int at = u % 2 == 0 ? n : total - 1 - n, turn = at / half % 4;
            const int step = at / (2 * kCols) * 2 + turn % 2;
            const int j = at % half + (turn == 1 || turn == 2 ? half : 0);
            sums[u][j] += row[step] * columns[j][step];
        }
    }

    // Waves that share out k: the first adds up the sums of all, in order. True where they are this wave's.
    static constexpr int kSums = kRows * kCols, kSumsBytes = kSums * kArchLanes * int(sizeof(float));
    TILEWISE_DEVICE bool add_waves(SharedAddress shared) {
        if constexpr (Config::wave_k == 1) return true;
        static_assert((Config::wave_k - 1) * kTileWaves * kSumsBytes <= Config::shared_bytes || Config::wave_k == 1,
                      "sums of waves in the operands' buffers");
        const SharedAddress own = shared + u32(warp * kSumsBytes + lane_index() * kChunkBytes);
        const auto place = [&](int wave, int i) {
            return own + u32((wave - 1) * kTileWaves * kSumsBytes + i / kFour * kArchLanes * kChunkBytes);
        };
        if (part > 0) {
            TILEWISE_UNROLL
            for (int i = 0; i < kSums; i += kFour) {
                const Four four = {sum(i), sum(i + 1), sum(i + 2), sum(i + 3)};
                store_shared<kChunkBytes>(place(part, i), pack_values<Fp32>(four));
            }
        }
        sync_block();
        if (part == 0) {
            TILEWISE_ROLLED
            for (int wave = 1; wave < Config::wave_k; ++wave) {
                TILEWISE_UNROLL
                for (int i = 0; i < kSums; i += kFour) {
                    Four four;
                    load_shared_float4(place(wave, i), four);
                    TILEWISE_UNROLL
                    for (int p = 0; p < kFour; ++p) sum(i + p) += four[p];
                }
            }
        }
        sync_block();  // results leave by the same shared memory
        return part == 0;
    }

    // A pass takes one row of every lane, and of it the columns of a warp tile: kLanesM rows, which are kRowStep apart.
    static constexpr int kRegionRows = kLanesM, kRegionCols = Config::warp_n, kRowStep = Rows::kLaneStep;
    static constexpr int kPassesN = kWaveN / kRegionCols, kPasses = kRows * kPassesN;
    static constexpr int kPassCols = kRegionCols / kLanesN;  // of a lane
    using Region = DrainRegion<kRegionRows, kRegionCols>;

    TILEWISE_DEVICE int pass_row(int pass) const { return first_row + Rows::first_of(pass / kPassesN); }
    TILEWISE_DEVICE int pass_col(int pass) const { return first_col + pass % kPassesN * kRegionCols; }
    TILEWISE_DEVICE void put(int pass, SharedAddress region) const {
        TILEWISE_UNROLL
        for (int p = 0; p < kPasses; ++p) {  // registers have no addresses: every pass has its own code
            if (p != pass) continue;
            TILEWISE_UNROLL
            for (int c = 0; c < kPassCols; ++c) {
                store_shared_float(region + Region::at(lane_m, Cols::index(lane_n, c)),
                                   sums[p / kPassesN][p % kPassesN * kPassCols + c]);
            }
        }
    }

    static constexpr int kRun = Cols::kRun;
    template <class F>
    TILEWISE_DEVICE void visit(F&& f) const {
        TILEWISE_UNROLL
        for (int i = 0; i < kRows; ++i) {
            TILEWISE_UNROLL
            for (int c = 0; c < kCols; c += kRun) {
                float run[kRun];
                TILEWISE_UNROLL
                for (int r = 0; r < kRun; ++r) run[r] = sums[i][c + r];
                f(first_row + Rows::index(lane_m, i), first_col + Cols::index(lane_n, c), run);
            }
        }
    }
};

}  // namespace tilewise::gpu
