// SPDX-License-Identifier: MIT
// How the sums of backward weight lie in shared memory before they leave a block; for the host, which counts the bytes, and kernels.
#pragma once

namespace tilewise {

// The sums of a wave on their way out take the place of the stages: a line for every column, of rows and some room that keeps lanes
// on banks of their own.
inline constexpr int kWgradSumRoom = 4;
constexpr int wgrad_sum_pitch(int wave_rows) { return (wave_rows + kWgradSumRoom) * 4; }
constexpr int wgrad_sum_bytes(int wave_rows, int wave_columns, int waves) {
    return waves * wave_columns * wgrad_sum_pitch(wave_rows);
}

}  // namespace tilewise
