// SPDX-License-Identifier: MIT
// Which of a launch's tiles a block begins with. Blocks are dealt out to the dies of a chip in turns, and a die has a cache of its own: so
// that neighbouring tiles, which read the same rows and columns, meet in one cache, each die gets a run of them. Host-compilable: it is
// tested there.
#pragma once
#include "../gpu/types.hpp"

namespace tilewise::hip {

using namespace gpu;

// Every number below `count` belongs to one block.
template <int dies>
TILEWISE_DEVICE u32 die_order(u32 block, u32 count) {
    const u32 die = block % dies, extra = count % dies;
    return die * (count / dies) + (die < extra ? die : extra) + block / dies;
}

// Blocks that share tiles keep their numbers: one waits for others of lower numbers, which start no later (../gpu/work_order.hpp).
template <class Config>
TILEWISE_DEVICE u32 tile_number(u32 block, u32 count) {
    if constexpr (Config::stream_k != gpu::StreamK::off) return block;
    return die_order<Config::dies>(block, count);
}

}  // namespace tilewise::hip
