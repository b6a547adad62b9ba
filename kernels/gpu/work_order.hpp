// SPDX-License-Identifier: MIT
// A block computes piece after piece: a tile of C, and the steps of k (each tile_k deep) that it adds up of it.
//   TileWalk    whole tiles in the order of tile_order.hpp; with split_k every part of k is a tile of its own.
//   StreamWalk  stream-K: as many tiles as fill all blocks whole times are computed whole; each of the rest is shared by as many
//               blocks as there are for it, which take equal parts of k, and is put together by the one that has its first step
//               (stream_k.hpp). Blocks that work at the same time are at the same few places along k, whatever tile they
//               have, or what they read of A and B would not be in the cache any more when others need it.
//   ClusterWalk one part of k of one tile: the blocks of a cluster, which have successive numbers, share the tile.
// Every step of every tile is met exactly once. Host-compilable: it is tested there.
#pragma once
#include "../common/stream_slots.hpp"
#include "tile_order.hpp"

namespace tilewise::gpu {

struct Work {
    TilePlace tile;
    int begin, end;      // in steps of k
    u32 index, sharers;  // of the blocks that share the tile, in the order of k
    u32 apart;           // positions from one sharer to the next
};

struct Blocks {
    u32 index, count;  // this one, of how many
};

template <class Order>
struct TileWalk {
    const Order& order;
    int parts;  // of k
    u32 id, stride;

    TILEWISE_DEVICE TileWalk(const Order& tiles, const KernelArgs& args, int, const Blocks& blocks)
        : order(tiles), parts(args.split_k), id(blocks.index), stride(blocks.count) {}

    // The steps of a tile may depend on its place.
    template <class StepsOf>
    TILEWISE_DEVICE bool next(Work& work, StepsOf&& steps_of) {
        if (id >= order.total()) return false;
        work.tile = order.locate(id);
        const int steps = steps_of(work.tile), part = int(work.tile.k_part);
        work.begin = parts <= 1 ? 0 : int(Index(steps) * part / parts);
        work.end = parts <= 1 ? steps : int(Index(steps) * (part + 1) / parts);
        work.index = 0, work.sharers = 1, work.apart = 0;
        id += stride;
        return true;
    }
};

// Positions run against the numbers of the blocks: who puts a tile together waits for blocks of lower numbers only, which start
// no later, so that the wait ends even where other kernels keep some blocks from starting.
TILEWISE_DEVICE u32 stream_position(const Blocks& blocks) { return blocks.count - 1 - blocks.index; }

template <class Order>
struct StreamWalk {
    const Order& order;
    u32 blocks, position;
    int steps;           // of every tile
    u32 tail, sharers;   // the first tiles, and the blocks that share each of them
    u32 id;              // of the next tile that is not shared
    bool begun = false;  // with the piece of a shared tile

    TILEWISE_DEVICE StreamWalk(const Order& tiles, const KernelArgs&, int tile_steps, const Blocks& block)
        : order(tiles), blocks(block.count), position(stream_position(block)), steps(tile_steps) {
        tail = order.total() % blocks;
        sharers = tail == 0 ? 1 : stream_sharers(blocks / tail, u32(steps));
        id = tail + block.index;
    }

    template <class StepsOf>
    TILEWISE_DEVICE bool next(Work& work, StepsOf&&) {
        if (!begun) {
            begun = true;
            if (position < tail * sharers) {
                const u32 index = position / tail;
                work = {order.locate(position - index * tail),
                        int(Index(steps) * index / sharers),
                        int(Index(steps) * (index + 1) / sharers),
                        index,
                        sharers,
                        tail};
                return true;
            }
        }
        if (id >= order.total()) return false;
        work = {order.locate(id), 0, steps, 0, 1, 0};
        id += blocks;
        return true;
    }
};

template <class Order>
struct ClusterWalk {
    const Order& order;
    u32 parts;  // of k, and blocks of a cluster
    u32 index;
    bool done = false;

    TILEWISE_DEVICE ClusterWalk(const Order& tiles, const KernelArgs& args, int, const Blocks& blocks)
        : order(tiles), parts(u32(args.split_k)), index(blocks.index) {}

    template <class StepsOf>
    TILEWISE_DEVICE bool next(Work& work, StepsOf&& steps_of) {
        if (done) return false;
        const u32 part = index % parts;
        work.tile = order.locate(index / parts);
        const int steps = steps_of(work.tile);
        work.begin = int(Index(steps) * part / parts);
        work.end = int(Index(steps) * (part + 1) / parts);
        work.index = 0, work.sharers = 1, work.apart = 0;
        return done = true;
    }
};

template <bool streams, class Order, bool in_clusters = false>
struct WalkChoice {
    using type = TileWalk<Order>;
};
template <class Order>
struct WalkChoice<true, Order, false> {
    using type = StreamWalk<Order>;
};
template <class Order>
struct WalkChoice<false, Order, true> {
    using type = ClusterWalk<Order>;
};

}  // namespace tilewise::gpu
