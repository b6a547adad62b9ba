// SPDX-License-Identifier: MIT
// Where a lane's part of four 8 x 8 matrices of 16-bit elements goes in shared memory, as ldmatrix and mma.sync leave it in
// registers: by one stmatrix where there is one, by four stores of a pair of elements elsewhere.
#pragma once
#include "primitives.hpp"

namespace tilewise::cuda {

// Rows lie `pitch` bytes apart (a multiple of 16); the second matrix `second` bytes after the first, and the other two, `others` bytes
// after these, in the same way.
template <int pitch, int second, int others>
struct MatrixPlaces {
    static_assert(pitch % 16 == 0 && second % 16 == 0 && others % 16 == 0);
    SharedAddress at;

    explicit TILEWISE_DEVICE MatrixPlaces(SharedAddress first) {
        const int lane = lane_index();
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
        at = first + lane % 8 * pitch + lane / 8 % 2 * second + lane / 16 * others;
#else
        at = first + lane / 4 * pitch + lane % 4 * 4;
#endif
        hide(at);
    }
    TILEWISE_DEVICE void put(SharedAddress offset, const u32 (&words)[4]) const {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
        store_matrices(at + offset, words);
#else
        TILEWISE_UNROLL
        for (int i = 0; i < 4; ++i)
            store_shared<4>(at + offset + i % 2 * second + i / 2 * others, Packet<4>{{words[i]}});
#endif
    }
};

}  // namespace tilewise::cuda
