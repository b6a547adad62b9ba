// SPDX-License-Identifier: MIT
// How depthwise backward weight adds up its parts: the host counts blocks by it, the kernel's warps
// share sums by it.
#pragma once

namespace tilewise {

// Sums of backward weight that a warp adds up, of so many parts. Eight neighbours fill a sector of memory, and four lanes take turns at
// the parts of each; of many parts that takes too long, and sixteen lanes are faster (an H200: at 132, but not at 88).
constexpr int depthwise_sums_per_warp(int parts) {
    constexpr int kManyParts = 97, kFew = 2, kSector = 8;
    return parts >= kManyParts ? kFew : kSector;
}

}  // namespace tilewise
