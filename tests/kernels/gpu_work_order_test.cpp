// SPDX-License-Identifier: MIT
// How blocks share out tiles and their steps of k: nothing twice, nothing left out, and no block waits for one that may wait for
// it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "kernels/gpu/work_order.hpp"
#include "kernels/tile_order_testing.hpp"

namespace tilewise::gpu {
namespace {

constexpr int kMostTiles = 12, kMostGroup = 5;

using Tile = std::tuple<u32, u32, u32, u32>;
Tile tile_of(const Work& work) { return {work.tile.k_part, work.tile.batch, work.tile.tile_m, work.tile.tile_n}; }

// All work of one block.
template <class Walk>
std::vector<Work> work_of(const TileOrder<>& order, const KernelArgs& args, int steps, const Blocks& block) {
    Walk walk(order, args, steps, block);
    std::vector<Work> all;
    for (Work work; walk.next(work, [&](const TilePlace&) { return steps; });) all.push_back(work);
    return all;
}

TEST(CudaWorkOrder, TilesAreTakenWholeOrByParts) {
    Random random(5);
    for (int i = 0; i < 100; ++i) {
        const KernelArgs args = random_tiles(random, kMostTiles, kMostGroup);
        const TileOrder<> order(args, kTileM, kTileN);
        const int steps = static_cast<int>(random.between(3, 20));
        const u32 blocks = static_cast<u32>(random.between(1, 20));
        std::map<Tile, int> seen;
        int total = 0;
        for (u32 b = 0; b < blocks; ++b) {
            for (const Work& work : work_of<TileWalk<TileOrder<>>>(order, args, steps, {b, blocks})) {
                EXPECT_EQ(++seen[tile_of(work)], 1);
                EXPECT_EQ(work.sharers, 1u);
                EXPECT_LT(work.begin, work.end);
                total += work.end - work.begin;
            }
        }
        EXPECT_EQ(seen.size(), order.total());
        EXPECT_EQ(total, static_cast<int>(order.total()) / args.split_k * steps);
    }
}

TEST(CudaWorkOrder, TheBlocksOfAClusterShareATile) {
    Random random(6);
    for (int i = 0; i < 100; ++i) {
        KernelArgs args = random_tiles(random, kMostTiles, kMostGroup);
        args.split_k = static_cast<int>(random.between(2, 8));
        const TileOrder<> order(args, kTileM, kTileN);
        const int steps = static_cast<int>(random.between(args.split_k, 40));
        std::map<Tile, std::vector<bool>> seen;
        for (u32 b = 0; b < order.total(); ++b) {
            const auto all = work_of<ClusterWalk<TileOrder<>>>(order, args, steps, {b, order.total()});
            ASSERT_EQ(all.size(), 1u) << "a block has one part of one tile";
            const Work& work = all.front();
            EXPECT_LT(work.begin, work.end);
            EXPECT_EQ(tile_of(work), tile_of(work_of<ClusterWalk<TileOrder<>>>(
                                         order, args, steps, {b / u32(args.split_k) * u32(args.split_k), 0})[0]));
            auto& met = seen[tile_of(work)];
            met.resize(static_cast<std::size_t>(steps));
            for (int s = work.begin; s < work.end; ++s) {
                EXPECT_FALSE(met[static_cast<std::size_t>(s)]);
                met[static_cast<std::size_t>(s)] = true;
            }
        }
        EXPECT_EQ(seen.size() * static_cast<std::size_t>(args.split_k), order.total());
        for (const auto& [tile, met] : seen) EXPECT_EQ(std::count(met.begin(), met.end(), true), steps);
    }
}

struct Piece {
    u32 block;
    Work work;
};

TEST(CudaWorkOrder, StreamsMeetEveryStepOnce) {
    Random random(7);
    for (int i = 0; i < 300; ++i) {
        KernelArgs args = random_tiles(random, kMostTiles, kMostGroup);
        args.split_k = 1;
        const TileOrder<> order(args, kTileM, kTileN);
        const int steps = static_cast<int>(random.between(1, 60));
        const u32 blocks = static_cast<u32>(random.between(1, 150));
        SCOPED_TRACE(testing::Message() << order.total() << " tiles of " << steps << " steps, " << blocks << " blocks");
        std::map<Tile, std::vector<Piece>> tiles;
        for (u32 b = 0; b < blocks; ++b) {
            int partial = 0;
            for (const Work& work : work_of<StreamWalk<TileOrder<>>>(order, args, steps, {b, blocks})) {
                ASSERT_LT(work.begin, work.end);
                tiles[tile_of(work)].push_back({b, work});
                partial += work.index > 0;
            }
            EXPECT_LE(partial, 1) << "one slot for each block";
        }
        ASSERT_EQ(tiles.size(), order.total());
        for (auto& [tile, pieces] : tiles) {
            ASSERT_EQ(pieces.size(), pieces[0].work.sharers);
            std::vector<const Piece*> by_index(pieces.size());
            for (const Piece& piece : pieces) {
                ASSERT_EQ(piece.work.sharers, pieces.size());
                ASSERT_LT(piece.work.index, pieces.size());
                by_index[piece.work.index] = &piece;
            }
            int at = 0;
            for (std::size_t p = 0; p < by_index.size(); ++p) {
                ASSERT_NE(by_index[p], nullptr);
                const Work& work = by_index[p]->work;
                EXPECT_EQ(work.begin, at);
                at = work.end;
                EXPECT_NEAR(work.end - work.begin, steps / static_cast<double>(pieces.size()), 1.0) << "even parts";
                // The slot of a sharer is found from the one before, and who waits has the higher number.
                EXPECT_EQ(by_index[p]->block + p * work.apart, by_index[0]->block);
            }
            EXPECT_EQ(at, steps);
        }
    }
}

// Tiles that are left over once every block has had as many as all the others are shared by all blocks there are for them.
TEST(CudaWorkOrder, StreamsShareWhatIsLeftOver) {
    KernelArgs args = {};
    args.m = 7 * kTileM, args.n = 5 * kTileN, args.batch = 1, args.split_k = 1, args.raster_group = 1;
    const TileOrder<> order(args, kTileM, kTileN);
    constexpr u32 kBlocks = 16;  // 35 tiles: two each, and three that five blocks share
    constexpr int kSteps = 40;
    u32 most = 0, shared = 0;
    for (u32 b = 0; b < kBlocks; ++b) {
        const auto all = work_of<StreamWalk<TileOrder<>>>(order, args, kSteps, {b, kBlocks});
        u32 steps = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            steps += static_cast<u32>(all[i].end - all[i].begin);
            shared += all[i].sharers > 1;
            EXPECT_TRUE(i == 0 || all[i].index == 0) << "contributions come first";
        }
        most = std::max(most, steps);
    }
    EXPECT_EQ(shared, 3u * 5);
    EXPECT_EQ(most, 2u * kSteps + kSteps / 5);
}

}  // namespace
}  // namespace tilewise::gpu
