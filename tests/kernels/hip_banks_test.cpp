// SPDX-License-Identifier: MIT
// Shared memory of AMD GPUs serves 16-byte accesses of a wave in groups of eight lanes: reads in pairs of quads that lie apart, writes in
// rows. No two lanes of a group may want different words of one bank, in any layout that kernels have.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "kernels/gpu/tile_layout.hpp"
#include "kernels/hip/wave_region.hpp"

namespace tilewise::hip {
namespace {

using gpu::u32;
constexpr int kLanes = 64, kGroup = 8, kBankBytes = gpu::kChunkBytes * gpu::kBankChunks;
using Addresses = std::array<u32, kLanes>;

int read_lane(int group, int i) {
    constexpr int kSecond[] = {20, 16, 28, 24};  // the other quad of the group that begins at 0, 4, 8, 12
    const int half = group / 4 * 32, quad = group % 4;
    return half + (i < 4 ? quad * 4 + i : kSecond[quad] + i - 4);
}
int write_lane(int group, int i) { return group * kGroup + i; }

// Lanes of a group that want the same chunk get it together; others of its banks wait.
template <class LaneOf>
int most_ways(const Addresses& at, LaneOf&& lane_of) {
    std::size_t most = 0;
    for (int group = 0; group < kLanes / kGroup; ++group) {
        std::array<std::set<u32>, gpu::kBankChunks> wanted;
        for (int i = 0; i < kGroup; ++i) {
            const u32 address = at[static_cast<std::size_t>(lane_of(group, i))];
            wanted[address % kBankBytes / gpu::kChunkBytes].insert(address);
        }
        for (const auto& bank : wanted) most = std::max(most, bank.size());
    }
    return static_cast<int>(most);
}
template <class Place>
Addresses addresses(Place&& place) {
    Addresses at{};
    for (int lane = 0; lane < kLanes; ++lane) at[static_cast<std::size_t>(lane)] = place(static_cast<u32>(lane));
    return at;
}

template <int line_bytes, int side>
void check_tile() {
    using Layout = gpu::TileLayout<64, line_bytes>;
    constexpr u32 deep = kLanes / side;
    for (u32 k = 0; k < Layout::kChunks / deep; ++k) {
        const auto read = addresses([&](u32 lane) { return Layout::offset(lane % side, k * deep + lane / side); });
        EXPECT_EQ(most_ways(read, read_lane), 1) << line_bytes << " bytes, side " << side << ", step " << k;
    }
    for (u32 first = 0; first < 64 * Layout::kChunks; first += kLanes) {
        const auto write = addresses([&](u32 lane) {
            return Layout::offset((first + lane) / Layout::kChunks, (first + lane) % Layout::kChunks);
        });
        EXPECT_EQ(most_ways(write, write_lane), 1) << line_bytes << " bytes from chunk " << first;
    }
}

TEST(HipBanks, TilesHaveNoConflicts) {
    check_tile<32, 32>();
    check_tile<64, 16>(), check_tile<64, 32>();
    check_tile<128, 16>(), check_tile<128, 32>();
    check_tile<256, 16>(), check_tile<256, 32>();
    check_tile<512, 16>(), check_tile<512, 32>();
}

template <int side, int cols, int vector>
void check_region() {
    using Region = WaveRegion<side, cols>;
    constexpr u32 run_cols = 4 * kLanes / side, runs = cols / vector;
    for (u32 col = 0; col < cols; col += run_cols) {
        const auto write = addresses([&](u32 lane) { return Region::at(lane % side, col + lane / side * 4); });
        EXPECT_EQ(most_ways(write, write_lane), 1) << "side " << side << ", " << cols << " columns from " << col;
    }
    for (u32 first = 0; first + kLanes <= side * runs; first += kLanes) {
        for (u32 word = 0; word < vector; word += 4) {
            const auto read = addresses(
                [&](u32 lane) { return Region::at((first + lane) / runs, (first + lane) % runs * vector + word); });
            EXPECT_EQ(most_ways(read, read_lane), 1) << "side " << side << ", " << cols << " columns, run " << first;
        }
    }
    std::set<u32> places;
    for (u32 row = 0; row < side; ++row) {
        for (u32 col = 0; col < cols; ++col) EXPECT_TRUE(places.insert(Region::at(row, col)).second);
    }
}

TEST(HipBanks, RegionsHaveNoConflicts) {
    check_region<16, 16, 4>(), check_region<16, 32, 4>(), check_region<16, 64, 4>(), check_region<16, 128, 4>();
    check_region<32, 16, 4>(), check_region<32, 32, 4>(), check_region<32, 64, 4>(), check_region<32, 128, 4>();
    check_region<16, 32, 8>(), check_region<16, 64, 8>(), check_region<16, 128, 8>();
    check_region<32, 32, 8>(), check_region<32, 64, 8>(), check_region<32, 128, 8>();
}

}  // namespace
}  // namespace tilewise::hip
