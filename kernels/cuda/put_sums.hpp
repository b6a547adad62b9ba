// SPDX-License-Identifier: MIT
// The sums of a wave's mma.sync products, as they lie in registers, to shared memory, where the end of backward weight by patches
// (wgrad_drain.hpp) finds them: [wave][column][row], columns `pitch` bytes apart.
#pragma once
#include "primitives.hpp"

namespace tilewise::cuda {

// Lane l has of every step of 16 rows and 8 columns rows l / 4 and l / 4 + 8, and columns 2 (l % 4) and the next.
template <int pitch, int steps_m, int steps_n>
TILEWISE_DEVICE void put_sums(SharedAddress wave, const float (&sums)[steps_m][steps_n][4]) {
    constexpr int kStepM = 16, kStepN = 8, kMatrixBytes = 8 * 4;
    const SharedAddress own = wave + lane_index() % 4 * 2 * pitch + lane_index() / 4 * 4;
    TILEWISE_UNROLL
    for (int i = 0; i < steps_m; ++i) {
        TILEWISE_UNROLL
        for (int j = 0; j < steps_n; ++j) {
            const SharedAddress to = own + j * kStepN * pitch + i * kStepM * 4;
            store_shared_float(to, sums[i][j][0]);
            store_shared_float(to + pitch, sums[i][j][1]);
            store_shared_float(to + kMatrixBytes, sums[i][j][2]);
            store_shared_float(to + kMatrixBytes + pitch, sums[i][j][3]);
        }
    }
}

}  // namespace tilewise::cuda
