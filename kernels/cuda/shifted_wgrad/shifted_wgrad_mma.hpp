// SPDX-License-Identifier: MIT
// The products of backward weight by shifted positions (shifted_wgrad.hpp) on mma.sync, for groups of 4, 8 and 16 channels: a line of 64
// channels is four strips of 16, and each warp has one strip's rows (tap, 16 channels) and its 16 columns k, of one group or of the
// diagonal of several. Warps of a strip share out the positions. Lines lie in the 128-byte swizzle, as the copy engine writes them:
// the chunk of a lane's address depends on its line's number modulo eight, which is the same in all steps of 16 positions.
#pragma once
#include "../../common/wgrad_sums.hpp"
#include "../../gpu/tile_layout.hpp"
#include "../primitives.hpp"
#include "../put_sums.hpp"

namespace tilewise::cuda::shifted_wgrad {

template <class Tile>
struct ShiftedWgradMmaCore {
    using Element = typename Tile::A;
    static constexpr int kStrip = 16, kMatrix = 8, kStepN = 8, kLineBytes = 128, kDepth = 16;
    static constexpr int kWaveM = Tile::tile_m, kWaveN = Tile::tile_n / Tile::wave_n;
    static constexpr int kStepsM = kWaveM / kStrip, kStepsN = kWaveN / kStepN, kGroups = Tile::merge / Tile::wave_n;
    static constexpr bool kFew = false;
    static constexpr int kPitch = wgrad_sum_pitch(kWaveM), kSumBytes = kWaveN * kPitch;
    static_assert(Tile::wave_m == 1 && kWaveN == kStrip && Tile::wave_n * kStrip * Element::bytes == kLineBytes);

    float sums[kStepsM][kStepsN][4] = {};
    u32 taps[kStepsM], columns;  // the lane's addresses in a stage's x and dy, at its first positions
    int part;                    // of the positions

    // `words`: where in x each tap starts, in lines.
    TILEWISE_DEVICE explicit ShiftedWgradMmaCore(SharedAddress words) {
        const int lane = lane_index(), strip = warp_index() % Tile::wave_n;
        part = warp_index() / Tile::wave_n;
        // A's registers: positions 0-7 of eight rows and of the next eight, then positions 8-15 of both.
        const int position = lane / kStrip * kMatrix + lane % kMatrix, chunk = strip * 2 + lane / kMatrix % 2;
        TILEWISE_UNROLL
        for (int i = 0; i < kStepsM; ++i)
            taps[i] = place(position + int(load_shared<4>(words + i * 4).words[0]), chunk);
        // B's: positions 0-7 and 8-15 of eight columns, then of the next eight.
        columns = place(lane % kStrip, strip * 2 + lane / kStrip);
    }
    static TILEWISE_DEVICE u32 place(int line, int chunk) {
        return u32(line * kLineBytes + ((chunk ^ (line % kMatrix)) * kChunkBytes));
    }

    // The positions of a stage.
    template <int kPositions>
    TILEWISE_DEVICE void multiply(SharedAddress y, SharedAddress x) {
        TILEWISE_ROLLED
        for (int step = part; step < kPositions / kDepth; step += Tile::wave_k) {
            const u32 first = u32(step * kDepth * kLineBytes);
            u32 a[2][4], b[4];
            load_matrices<true>(y + columns + first, b);
            load_matrices<true>(x + taps[0] + first, a[0]);
            TILEWISE_UNROLL
            for (int i = 0; i < kStepsM; ++i) {
                if (i + 1 < kStepsM) load_matrices<true>(x + taps[i + 1] + first, a[(i + 1) % 2]);
                multiply_add<Element, Element>(sums[i][0], a[i % 2], b[0], b[1]);
                multiply_add<Element, Element>(sums[i][1], a[i % 2], b[2], b[3]);
            }
        }
    }

    TILEWISE_DEVICE void put(SharedAddress shared) const { put_sums<kPitch>(shared + warp_index() * kSumBytes, sums); }
};

}  // namespace tilewise::cuda::shifted_wgrad
