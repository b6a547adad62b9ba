// SPDX-License-Identifier: MIT
// The tests of orders of tiles share these: a size of tiles, and random products that have some of them.
#pragma once

#include "base/random.hpp"
#include "kernels/common/args.hpp"

namespace tilewise::gpu {

inline constexpr int kTileM = 64, kTileN = 32;

// At most so many tiles along a side and in a group of the raster.
inline KernelArgs random_tiles(Random& random, int most, int most_group) {
    KernelArgs args = {};
    args.m = random.between(1, most * kTileM), args.n = random.between(1, most * kTileN);
    args.batch = random.between(1, 3);
    args.split_k = static_cast<int>(random.between(1, 3));
    args.raster_group = static_cast<int>(random.between(1, most_group));
    return args;
}

}  // namespace tilewise::gpu
