// SPDX-License-Identifier: MIT
// Shared memory of AMD GPUs serves 16-byte accesses of a wave in groups of eight lanes: reads in pairs of quads that lie apart, writes in
// rows. No two lanes of a group may want different words of one bank, in any layout that kernels have.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "kernels/golden_table.hpp"
#include "kernels/gpu/tile_layout.hpp"
#include "kernels/hip/crossed_layout.hpp"
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

// Tiles that are turned around as they are read: of 32 lanes that read 8 bytes each no two want different words of one of 64 banks.
template <int extent, int side>
void check_crossed_reads() {
    constexpr int kDepth = 64, kSteps = 8 * kLanes / side;
    constexpr u32 kHalf = kLanes / 2, kBytes = 8, kBankRow = 256;
    using Layout = CrossedLayout<kDepth, 2 * extent>;
    for (int line = 0; line < kDepth; line += line % kSteps == 0 ? 4 : kSteps - 4) {
        for (int element = 0; element < extent; element += side) {
            const auto read = addresses([&](u32 lane) {
                return Layout::at(Layout::template lane_place<side>(0, static_cast<int>(lane)), element, line);
            });
            for (u32 first : {0U, kHalf}) {
                std::set<u32> banks;
                for (u32 lane = first; lane < first + kHalf; ++lane) banks.insert(read[lane] % kBankRow / kBytes);
                EXPECT_EQ(banks.size(), kHalf) << extent << " elements from " << element << ", line " << line;
            }
        }
    }
}
template <int extent>
void check_crossed_writes() {
    constexpr u32 kLine = 2 * extent, kDepth = 64;
    using Layout = CrossedLayout<kDepth, kLine>;
    std::set<u32> places;
    for (u32 first = 0; first < kDepth * kLine; first += kLanes * gpu::kChunkBytes) {
        const auto write = addresses([&](u32 lane) {
            const u32 byte = first + lane * gpu::kChunkBytes;
            return Layout::byte_offset(byte / kLine, byte % kLine);
        });
        EXPECT_EQ(most_ways(write, write_lane), 1) << extent << " elements from byte " << first;
        places.insert(write.begin(), write.end());
    }
    EXPECT_EQ(places.size(), kDepth * kLine / gpu::kChunkBytes);
}

TEST(HipBanks, CrossedTilesHaveNoConflicts) {
    check_crossed_reads<32, 32>(), check_crossed_reads<64, 32>();
    check_crossed_reads<128, 32>(), check_crossed_reads<256, 32>();
    check_crossed_reads<32, 16>(), check_crossed_reads<64, 16>();
    check_crossed_reads<128, 16>(), check_crossed_reads<256, 16>();
    check_crossed_writes<16>(), check_crossed_writes<32>(), check_crossed_writes<64>();
    check_crossed_writes<128>(), check_crossed_writes<256>();
}

// Where each lane's elements come from: of sixteen lanes number l gets element l % 4 of what the lanes l / 4, l / 4 + 4, l / 4 + 8 and
// l / 4 + 12 asked for (tests/golden/hip/gfx950_ds_read_b64_tr_b16.txt).
template <int extent, int side>
void check_crossed_chunks() {
    constexpr int kDepth = 64, kSteps = 8 * kLanes / side;
    using Layout = CrossedLayout<kDepth, 2 * extent>;
    std::vector<std::pair<int, int>> held(Layout::kBytes / 2);  // (k, element) of each place
    for (int k = 0; k < kDepth; ++k) {
        for (int e = 0; e < extent; ++e) held[Layout::byte_offset(u32(k), u32(2 * e)) / 2] = {k, e};
    }
    const auto table = read_golden(TILEWISE_SOURCE_DIR "/tests/golden/hip", "gfx950_ds_read_b64_tr_b16");
    ASSERT_TRUE(table.ok()) << table.error().message;
    for (int k = 0; k < kDepth; k += kSteps) {
        for (int element = 0; element < extent; element += side) {
            for (int lane = 0; lane < kLanes; ++lane) {
                for (int i = 0; i < 8; ++i) {
                    const u32 from = table->at(lane, i % 4),
                              place = Layout::template lane_place<side>(0, int(from >> 8));
                    const u32 at = Layout::at(place, element, k + i / 4 * 4) + 2 * (from & 0xff);
                    const std::pair wanted(k + lane / side * 8 + i, element + lane % side);
                    ASSERT_EQ(held.at(at / 2), wanted) << "lane " << lane << ", element " << i;
                }
            }
        }
    }
}

TEST(CrossedReads, GivesALaneItsChunkAlongK) {
    check_crossed_chunks<16, 16>(), check_crossed_chunks<64, 16>(), check_crossed_chunks<256, 16>();
    check_crossed_chunks<32, 32>(), check_crossed_chunks<64, 32>(), check_crossed_chunks<128, 32>();
}

}  // namespace
}  // namespace tilewise::hip
