// SPDX-License-Identifier: MIT
// Parts of backward weight that are the blocks of a cluster (block_diagonal_wgrad.hpp, toeplitz_wgrad.hpp): each has its sums in
// shared memory, and all add up and write a share of them, so that there is no second kernel. Always in the same order: block after
// block.
#pragma once
#include "../common/depthwise_tiles_args.hpp"
#include "../gpu/depthwise_reduce.hpp"
#include "hopper.hpp"

namespace tilewise::cuda {

// A block adds up these: channels, a part of the rows, and a plane of taps.
struct DepthwisePart {
    int channel_tile, part, plane;
};
template <class Config, int planes>
TILEWISE_DEVICE DepthwisePart depthwise_part(const DepthwiseTilesArgs& launch) {
    const int index = int(block_index());
    if constexpr (Config::cluster_k) {  // blocks of a cluster are neighbours
        const int slice = launch.parts.quotient(index), tile = slice / planes;
        return {tile, index - slice * int(launch.parts.divisor), slice - tile * planes};
    } else {
        const int slice = launch.channel_tiles.quotient(index), part = slice / planes;
        return {index - slice * int(launch.channel_tiles.divisor), part, slice - part * planes};
    }
}

// `cells` sums for each of `copies` copies of a block, from `sums` on; `write` takes a cell and its sum. All threads of all blocks call.
template <int cells, int copies, int threads, class Write>
TILEWISE_DEVICE void add_up_cluster(SharedAddress sums, int blocks, const Write& write) {
    constexpr int kMostBlocks = 8;  // of a cluster that every chip takes
    cluster_sync();
    TILEWISE_ROLLED
    for (int cell = int(cluster_rank()) * threads + thread_index(); cell < cells; cell += blocks * threads) {
        // All are asked for before the first is added: each takes as long to come as any.
        float held[kMostBlocks][copies];
        TILEWISE_UNROLL
        for (int block = 0; block < kMostBlocks; ++block) {
            const SharedAddress there = in_block(sums + cell * 4, unsigned(block < blocks ? block : 0));
            TILEWISE_UNROLL
            for (int copy = 0; copy < copies; ++copy)
                held[block][copy] = block < blocks ? load_cluster_float(there + copy * cells * 4) : 0.0f;
        }
        float sum = 0;
        TILEWISE_UNROLL
        for (int i = 0; i < kMostBlocks * copies; ++i) sum += held[i / copies][i % copies];
        write(cell, sum);
    }
    cluster_sync();  // nobody's sums go before they are read
}

}  // namespace tilewise::cuda
