// SPDX-License-Identifier: MIT
// Tiles that are turned around on their way to shared memory: every element arrives where the layout says, once, and what lies
// outside the matrix arrives as zero without being read; and the cores of plain arithmetic fetch from there.
#include <gtest/gtest.h>

#include <vector>

#include "base/random.hpp"
#include "kernels/cuda_recorder.hpp"

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
        bring(Tile({data.data(), rows, stride}, first, 0), way, 1, depth - 3, threads);
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

template <int extent, int depth, int vector, int threads>
void expect_words_along_extent(Way way) {
    using Tile = kernel::WordsAlongExtent<kernel::Fp32, extent, depth, vector, threads>;
    Random random(8);
    const Index rows = extent + 5, k = 2 * depth - vector, stride = k + 4;
    const std::vector<u8> data = matrix(random, rows, 4 * stride);
    for (const int first : {0, extent}) {
        recorded = {};
        bring(Tile({data.data(), rows, stride}, first, 0), way, 1, depth - vector, threads);
        EXPECT_EQ(recorded.words.size() * 4, static_cast<std::size_t>(Tile::kBytes));
        for (int e = 0; e < extent; ++e) {
            for (int i = 0; i < depth; ++i) {
                const u32 got =
                    recorded.words.at(Tile::Layout::byte_offset(static_cast<u32>(i), static_cast<u32>(e) * 4));
                u32 want = 0;
                if (first + e < rows && depth + i < k) {
                    std::memcpy(&want, &data[static_cast<std::size_t>(((first + e) * stride + depth + i) * 4)], 4);
                }
                ASSERT_EQ(got, want) << "row " << e << ", k " << i;
            }
        }
    }
}

TEST(CudaTransposedTile, WordsComeAlongTheExtent) {
    for (const Way way : {Way::registers, Way::on_the_spot, Way::copies}) {
        expect_words_along_extent<128, 8, 4, 128>(way);
        expect_words_along_extent<64, 16, 1, 64>(way);
        expect_words_along_extent<32, 16, 4, 256>(way);
    }
}

template <int lanes, int count>
void expect_fetched() {
    using Tile = kernel::WordsAlongExtent<kernel::Fp32, 128, 16, 4, 128>;
    using Share = kernel::LaneShare<Tile, lanes, count>;
    for (const int first : {0, 64}) {
        for (int lane = 0; lane < lanes; ++lane) {
            for (int group = 0; group < count / 4; ++group) {
                for (int k = 0; k < 8; ++k) {
                    float four[4];
                    Share::fetch(Share::start(first, lane), group, k, four);
                    const int row = first + Share::index(lane, group * 4);
                    EXPECT_EQ(recorded.fetched, Tile::Layout::offset(static_cast<u32>(k), static_cast<u32>(row / 4)));
                }
            }
        }
    }
}

TEST(CudaTransposedTile, LanesFetchTheirRows) {
    expect_fetched<4, 8>();
    expect_fetched<4, 16>();
    expect_fetched<8, 4>();
    expect_fetched<8, 8>();
}

}  // namespace
}  // namespace tilewise
