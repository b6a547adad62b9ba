// SPDX-License-Identifier: MIT
// What a block computes, piece after piece: a tile of C, and the steps of k (each tile_k deep) that it adds up of it.
//   TileWalk    whole tiles in the order of tile_order.hpp; with split_k every part of k is a tile of its own.
//   StreamWalk  stream-K: the steps of k of the first tiles are shared out evenly, so that a block begins and ends in the
//               middle of tiles and all end at the same time; a tile that several blocks share is put together by the block
//               that has its first step (stream_k.hpp). As many tiles as fill the units whole times follow, a tile a block.
//   ClusterWalk one part of k of one tile: the blocks of a cluster, which have successive numbers, share the tile.
// Every step of every tile is met exactly once. Host-compilable: it is tested there.
#pragma once
#include "tile_order.hpp"

namespace tilewise::cuda {

struct Work {
    TilePlace tile;
    int begin, end;      // in steps of k
    u32 index, sharers;  // of the blocks that share the tile, in the order of k
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
        work.index = 0, work.sharers = 1;
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
    u32 blocks, steps;  // steps of every tile
    u32 shared_tiles;   // the first ones
    Index at, end;      // of the shared steps, this block's
    u32 id;             // then whole tiles

    TILEWISE_DEVICE StreamWalk(const Order& tiles, const KernelArgs&, int tile_steps, const Blocks& block)
        : order(tiles), blocks(block.count), steps(u32(tile_steps)) {
        // Between one and two tiles a block, if there are so many; a whole number of them would leave nothing to share.
        const u32 total = order.total(), odd = total % blocks;
        shared_tiles = total < blocks ? total : odd == 0 ? 0 : blocks + odd;
        at = first_step(stream_position(block));
        end = first_step(stream_position(block) + 1);
        id = shared_tiles + block.index;
    }

    template <class StepsOf>
    TILEWISE_DEVICE bool next(Work& work, StepsOf&&) {
        if (at < end) {
            const Index tile = quotient(at, steps), left = end - at;
            work.tile = order.locate(u32(tile));
            work.begin = int(at - tile * steps);
            work.end = left < Index(steps) - work.begin ? work.begin + int(left) : int(steps);
            const u32 owner = position_of(tile * steps), last = position_of(tile * steps + steps - 1);
            work.index = position_of(at) - owner;
            work.sharers = last - owner + 1;
            at += work.end - work.begin;
            return true;
        }
        if (id >= order.total()) return false;
        work = {order.locate(id), 0, int(steps), 0, 1};
        id += blocks;
        return true;
    }

private:
    TILEWISE_DEVICE Index shared_steps() const { return Index(shared_tiles) * steps; }
    TILEWISE_DEVICE Index first_step(u32 position) const { return quotient(shared_steps() * position, blocks); }
    // Whose step this is: the last position that begins no later.
    TILEWISE_DEVICE u32 position_of(Index step) const { return u32(quotient((step + 1) * blocks - 1, shared_steps())); }
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
        work.index = 0, work.sharers = 1;
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

}  // namespace tilewise::cuda
