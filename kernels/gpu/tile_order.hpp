// SPDX-License-Identifier: MIT
// Which tile a block works on: the linear id of a block (or of a step of a persistent block) becomes a part of k, a
// batch entry and a tile. Ids run over the tiles of one batch entry, then over the batch, then over the parts of k.
// Tiles of one cluster (cluster_m x cluster_n neighbours) have consecutive ids, m fastest; where the last cluster is not
// whole, ids lead to tiles beyond the matrix, which have nothing to do. Clusters are visited in strips of raster_group
// side by side: raster m walks a strip along m, so that neighbouring blocks share columns of B and a few rows of A in
// the L2 cache; n the same along n; hilbert follows a Hilbert curve through the squares of a strip.
// Every id is met exactly once. Host-compilable: it is tested there.
#pragma once
#include "types.hpp"

namespace tilewise::gpu {

struct TilePlace {
    u32 batch;
    u32 k_part;
    u32 tile_m, tile_n;  // in tiles
};

struct TilePair {
    u32 along, across;
};

TILEWISE_DEVICE u32 tile_count(Index size, int tile) { return u32((size + tile - 1) / tile); }

// Step d of the Hilbert curve through a square of side 2^n: at every level the two low bits of d name a quarter, and
// the curve so far is turned to fit in it.
TILEWISE_DEVICE TilePair hilbert_place(u32 side, u32 d) {
    TilePair p = {0, 0};
    for (u32 s = 1; s < side; s *= 2, d /= 4) {
        const u32 right = (d / 2) & 1, up = (d ^ right) & 1;
        if (up == 0) {
            if (right == 1) p = {s - 1 - p.along, s - 1 - p.across};
            p = {p.across, p.along};
        }
        p.along += s * right;
        p.across += s * up;
    }
    return p;
}

template <int cluster_m = 1, int cluster_n = 1>
struct TileOrder {
    static constexpr u32 kCluster = cluster_m * cluster_n;
    static constexpr u32 kHilbertSide = 8;  // where no group is given: 64 tiles, about one per unit

    u32 clusters_m, clusters_n;  // per batch entry
    u32 batch, parts;
    KernelRaster raster;
    u32 group;

    TILEWISE_DEVICE TileOrder(const KernelArgs& args, int tile_m, int tile_n)
        : TileOrder(args, args.m, args.n, args.batch, tile_m, tile_n) {}
    // Where tiles cover more than the matrices of C.
    TILEWISE_DEVICE TileOrder(const KernelArgs& args, Index rows, Index columns, Index entries, int tile_m, int tile_n)
        : clusters_m(tile_count(rows, tile_m * cluster_m)),
          clusters_n(tile_count(columns, tile_n * cluster_n)),
          batch(u32(entries)),
          parts(u32(args.split_k < 1 ? 1 : args.split_k)),
          raster(args.raster),
          group(u32(args.raster_group < 1 ? 1 : args.raster_group)) {}

    // Ids are 0 to total - 1, the ones of incomplete clusters among them.
    TILEWISE_DEVICE u32 total() const { return clusters_m * clusters_n * batch * parts * kCluster; }

    TILEWISE_DEVICE TilePlace locate(u32 id) const {
        const u32 per_entry = clusters_m * clusters_n;
        u32 cluster = id / kCluster, entry = 0;
        const u32 member = id % kCluster;
        if (cluster >= per_entry) entry = cluster / per_entry, cluster %= per_entry;
        const bool by_n = raster == KernelRaster::n;
        const TilePair p = by_n ? walk(cluster, clusters_n, clusters_m) : walk(cluster, clusters_m, clusters_n);
        const u32 place_m = by_n ? p.across : p.along, place_n = by_n ? p.along : p.across;
        return {parts == 1 ? entry : entry % batch, parts == 1 ? 0 : entry / batch,
                place_m * cluster_m + member % cluster_m, place_n * cluster_n + member / cluster_m};
    }

private:
    // Strips of `group` columns, each walked along its length.
    TILEWISE_DEVICE TilePair walk(u32 step, u32 length, u32 breadth) const {
        const bool curved = raster == KernelRaster::hilbert;
        const u32 width = curved ? hilbert_side() : group;
        const u32 strip = step / (width * length), begin = strip * width;
        const u32 here = breadth - begin < width ? breadth - begin : width;  // the last strip may be narrower
        const u32 left = step - begin * length, line = left / here;
        if (curved && here == width) {
            const u32 square = line / width;
            if ((square + 1) * width <= length) {
                const TilePair p = hilbert_place(width, left - square * width * width);
                return {square * width + p.along, begin + p.across};
            }
        }
        return {line, begin + left - line * here};
    }

    // A power of two.
    TILEWISE_DEVICE u32 hilbert_side() const {
        u32 side = 2;
        while (side * 2 <= group) side *= 2;
        return group == 1 ? kHilbertSide : side;
    }
};

}  // namespace tilewise::gpu
