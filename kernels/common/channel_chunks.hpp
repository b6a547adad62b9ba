// SPDX-License-Identifier: MIT
// Channels as gathering kernels count them where pixels begin anywhere in memory: every tap takes whole chunks of shared memory, the
// last of which is filled up with zeros. Shared by the kernels and by the host, which counts their tiles and steps.
#pragma once
#include "args.hpp"

namespace tilewise {

constexpr Index whole_chunks(Index channels, Index element_bytes) {
    constexpr Index kChunkBytes = 16;
    const Index each = kChunkBytes / element_bytes;
    return (channels + each - 1) / each * each;
}

}  // namespace tilewise
