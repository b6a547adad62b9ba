// SPDX-License-Identifier: MIT
// Tiles that are turned around on their way to shared memory: every element arrives where the layout says, once, and what lies
// outside the matrix arrives as zero without being read; and how plain arithmetic fetches from tiles of either orientation.
#include <gtest/gtest.h>

#include <vector>

#include "base/random.hpp"
#include "kernels/recorded/cuda_recorder.hpp"

namespace tilewise {
namespace {

namespace kernel = cuda_recorded;
using kernel::recorded, kernel::u32, kernel::u8;

enum class Way { registers, on_the_spot, copies };

template <class Tile>
void bring(const Tile& tile, Way way, int step, int k_left, int threads) {
    for (int thread = 0; thread < threads; ++thread) {
        threadIdx.x = static_cast<unsigned>(thread);
        if (way == Way::registers) {
            typename Tile::Registers registers;
            tile.load(registers, step, k_left);
            Tile::put(registers, 0);
        } else if (way == Way::on_the_spot) {
            tile.move(0, step, k_left);
        } else {
            tile.copy(0, step, k_left);
        }
    }
}

// A matrix with exactly the elements that may be read: `lines` lines `stride` apart.
std::vector<u8> matrix(Random& random, Index lines, Index stride) {
    std::vector<u8> bytes(static_cast<std::size_t>(lines * stride));
    for (u8& byte : bytes) byte = static_cast<u8>(random.between(1, 255));
    return bytes;
}

template <int extent, int depth, int vector, int threads>
void expect_bytes_along_k(Way way) {
    using Tile = kernel::BytesAlongK<kernel::Int8, extent, depth, vector, threads>;
    Random random(7);
    const Index rows = extent + extent / 2 / vector * vector, k = 2 * depth - 3, stride = rows + 16;
    const std::vector<u8> data = matrix(random, k, stride);
    for (const int first : {0, extent}) {
        recorded = {};
        bring(Tile({data.data(), rows, k, stride}, first, 0), way, 1, depth - 3, threads);
        EXPECT_EQ(recorded.words.size() * 4, static_cast<std::size_t>(Tile::kBytes));
        for (int e = 0; e < extent; ++e) {
            for (int i = 0; i < depth; ++i) {
                const u32 at = Tile::Layout::byte_offset(static_cast<u32>(e), static_cast<u32>(i));
                const u32 got = recorded.words.at(at / 4 * 4) >> (at % 4 * 8) & 0xff;
                const bool inside = first + e < rows && depth + i < k;
                const auto from = static_cast<std::size_t>((depth + i) * stride + first + e);
                ASSERT_EQ(got, inside ? data[from] : 0) << "element " << e << ", k " << i;
            }
        }
    }
}

TEST(CudaTransposedTile, BytesComeAlongK) {
    for (const Way way : {Way::registers, Way::on_the_spot, Way::copies}) {
        expect_bytes_along_k<128, 64, 16, 128>(way);
        expect_bytes_along_k<64, 128, 4, 64>(way);
        expect_bytes_along_k<64, 32, 1, 256>(way);
        expect_bytes_along_k<16, 64, 16, 128>(way);  // fewer units than threads
    }
}

// Every access of a lane, of tiles that lie along k and along the extent, is where the layout has its first number.
template <bool along_k, int depth, int lanes, int count>
void expect_fetched() {
    using Tile = kernel::OperandTile<kernel::Fp32, 128, depth, along_k, 4, 128>;
    using Share = kernel::LaneShare<Tile, lanes, count>;
    constexpr u32 tile = 4096;  // its address
    for (const int first : {0, 64}) {
        for (int lane = 0; lane < lanes; ++lane) {
            for (int step = 0; step < depth; step += 4) {
                for (int u = 0; u < count; ++u) {
                    const auto row = static_cast<u32>(first + Share::index(lane, Share::row_of(u, 0)));
                    const auto k = static_cast<u32>(step + Share::step_of(u, 0));
                    const u32 at =
                        along_k ? Tile::Layout::byte_offset(row, k * 4) : Tile::Layout::byte_offset(k, row * 4);
                    // From the start of the share of k of each of some waves on.
                    for (int eights = 1; eights <= depth / 8; eights *= 2) {
                        const int eight = step / 8, share = eight / eights * eights;
                        const auto start = Share::start(tile, first, lane, share);
                        float four[4];
                        Share::fetch(Share::eights_on(start, eight - share), step / 4 % 2, u, four);
                        ASSERT_EQ(recorded.fetched, tile + at)
                            << "lane " << lane << ", step " << step << ", access " << u << ", eights " << eights;
                    }
                }
            }
        }
    }
}

TEST(CudaSimtCore, LanesFetchTheirRows) {
    expect_fetched<false, 8, 4, 16>();
    expect_fetched<false, 16, 4, 8>();
    expect_fetched<false, 16, 8, 8>();
    expect_fetched<true, 8, 4, 16>();
    expect_fetched<true, 16, 4, 8>();
    expect_fetched<true, 32, 8, 8>();
    expect_fetched<true, 64, 8, 4>();
}

// Each of a lane's numbers is in one place of one access.
template <bool along_k>
void expect_numbers_found() {
    using Tile = kernel::OperandTile<kernel::Fp32, 128, 16, along_k, 4, 128>;
    using Share = kernel::LaneShare<Tile, 8, 8>;
    for (int u = 0; u < 8; ++u) {
        for (int p = 0; p < 4; ++p) {
            EXPECT_EQ(Share::access_of(Share::row_of(u, p), Share::step_of(u, p)), u);
            EXPECT_EQ(Share::place_of(Share::row_of(u, p), Share::step_of(u, p)), p);
        }
    }
}

TEST(CudaSimtCore, EveryNumberIsInOneAccess) {
    expect_numbers_found<true>();
    expect_numbers_found<false>();
}

}  // namespace
}  // namespace tilewise
