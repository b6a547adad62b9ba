// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <tuple>
#include <vector>

#include "kernels/gpu/tile_order.hpp"
#include "kernels/tile_order_testing.hpp"

namespace tilewise::gpu {
namespace {

template <int cluster_m, int cluster_n>
void expect_every_tile_once(const KernelArgs& args) {
    const TileOrder<cluster_m, cluster_n> order(args, kTileM, kTileN);
    const u32 tiles_m = tile_count(args.m, kTileM), tiles_n = tile_count(args.n, kTileN);
    std::set<std::tuple<u32, u32, u32, u32>> seen;
    std::size_t inside = 0;
    for (u32 id = 0; id < order.total(); ++id) {
        const TilePlace p = order.locate(id);
        ASSERT_TRUE(seen.emplace(p.k_part, p.batch, p.tile_m, p.tile_n).second) << "id " << id << " is a repetition";
        ASSERT_LT(p.batch, args.batch);
        ASSERT_LT(p.k_part, static_cast<u32>(args.split_k));
        inside += p.tile_m < tiles_m && p.tile_n < tiles_n;
        // A cluster's first tile says where its others are.
        const TilePlace first = order.locate(id - id % (cluster_m * cluster_n));
        ASSERT_EQ(first.tile_m % cluster_m, 0u);
        ASSERT_EQ(first.tile_n % cluster_n, 0u);
        ASSERT_EQ(p.tile_m / cluster_m, first.tile_m / cluster_m);
        ASSERT_EQ(p.tile_n / cluster_n, first.tile_n / cluster_n);
    }
    EXPECT_EQ(inside, std::size_t{tiles_m} * tiles_n * static_cast<std::size_t>(args.batch * args.split_k));
}

TEST(CudaTileOrder, MeetsEveryTileOnce) {
    Random random(11);
    for (int i = 0; i < 200; ++i) {
        KernelArgs args = random_tiles(random, 40, 17);
        args.raster = static_cast<KernelRaster>(random.between(0, 2));
        SCOPED_TRACE(testing::Message() << args.m << "x" << args.n << " raster " << static_cast<int>(args.raster)
                                        << " group " << args.raster_group);
        expect_every_tile_once<1, 1>(args);
        expect_every_tile_once<2, 1>(args);
        expect_every_tile_once<2, 2>(args);
    }
}

std::vector<TilePlace> places(KernelRaster raster, int group) {
    KernelArgs args = {};
    args.m = 4 * kTileM, args.n = 4 * kTileN, args.batch = 1, args.split_k = 1;
    args.raster = raster, args.raster_group = group;
    const TileOrder<> order(args, kTileM, kTileN);
    std::vector<TilePlace> all;
    for (u32 id = 0; id < order.total(); ++id) all.push_back(order.locate(id));
    return all;
}

TEST(CudaTileOrder, WalksAlongItsAxisAGroupAtATime) {
    const auto by_m = places(KernelRaster::m, 2), by_n = places(KernelRaster::n, 2);
    for (u32 id = 0; id < by_m.size(); ++id) {
        EXPECT_EQ(by_m[id].tile_m, id / 2 % 4) << id;
        EXPECT_EQ(by_m[id].tile_n, id / 8 * 2 + id % 2) << id;
        EXPECT_EQ(by_n[id].tile_n, by_m[id].tile_m) << id;
        EXPECT_EQ(by_n[id].tile_m, by_m[id].tile_n) << id;
    }
}

TEST(CudaTileOrder, HilbertStepsToANeighbour) {
    const auto all = places(KernelRaster::hilbert, 4);
    for (std::size_t i = 1; i < all.size(); ++i) {
        const int along_m = std::abs(static_cast<int>(all[i].tile_m) - static_cast<int>(all[i - 1].tile_m));
        const int along_n = std::abs(static_cast<int>(all[i].tile_n) - static_cast<int>(all[i - 1].tile_n));
        EXPECT_EQ(along_m + along_n, 1) << "step " << i;
    }
}

}  // namespace
}  // namespace tilewise::gpu
