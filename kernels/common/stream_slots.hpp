// SPDX-License-Identifier: MIT
// Host and kernels know this of stream-K: how many blocks share a tile, and the workspace, which has for each block a slot for
// the sums of a tile, then for each block its flags.
#pragma once
#include "args.hpp"

namespace tilewise {

inline constexpr int kFlagBytes = 16;  // of a block: a flag of 8 bytes for each of two groups of threads

// So many of the blocks there are for a tile of so many steps of k share it: putting their sums together takes as long
// as a few steps, so each has at least these.
constexpr unsigned stream_sharers(unsigned blocks, unsigned steps) {
    constexpr unsigned kLeastSteps = 8;
    const unsigned most = steps / kLeastSteps;
    return most < 2 || blocks < 2 ? 1 : most < blocks ? most : blocks;
}

}  // namespace tilewise
