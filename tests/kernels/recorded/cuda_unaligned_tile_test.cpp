// SPDX-License-Identifier: MIT
// Tiles whose lines begin anywhere: every element arrives where the layout says, whatever the boundary its line begins on, and
// what lies outside the matrix arrives as zero.
#include <gtest/gtest.h>

#include <vector>

#include "base/random.hpp"
#include "kernels/recorded/cuda_recorder.hpp"

namespace tilewise {
namespace {

namespace kernel = cuda_recorded;
using kernel::recorded, kernel::u16, kernel::u32;

// `extent` rows (or columns) of `k` elements in lines of `stride`, and a tile of it at `first`, one step of k on.
template <int extent, int depth, bool along_k, int threads>
void expect_elements(Index first, Index rows, Index k, Index stride, bool by_registers) {
    using Tile = kernel::UnalignedTile<kernel::Bf16, extent, depth, along_k, threads>;
    constexpr Index kMargin = 8;  // of whole chunks around the matrix
    const Index lines = along_k ? rows : k;
    std::vector<u16> data(static_cast<std::size_t>(lines * stride + 3 * kMargin));
    Random random(11);
    for (u16& element : data) element = static_cast<u16>(random.between(1, 65535));
    const u16* start = data.data() + kMargin;
    recorded = {};
    const Tile tile({start, rows, stride}, first, 0);
    const int k_left = static_cast<int>(k - depth);
    for (int thread = 0; thread < threads; ++thread) {
        threadIdx.x = static_cast<unsigned>(thread);
        if (by_registers) {
            typename Tile::Registers registers;
            tile.load(registers, 1, k_left);
            Tile::put(registers, 0);
        } else {
            tile.move(0, 1, k_left);
        }
    }
    ASSERT_EQ(recorded.words.size() * 4, static_cast<std::size_t>(Tile::kBytes));
    for (int e = 0; e < extent; ++e) {
        for (int i = 0; i < depth; ++i) {
            const auto line = static_cast<u32>(along_k ? e : i), element = static_cast<u32>(along_k ? i : e);
            const u32 at = Tile::Layout::byte_offset(line, element * 2);
            const u32 got = recorded.words.at(at / 4 * 4) >> (at % 4 * 8) & 0xffff;
            const Index row = first + e, step = depth + i;
            const u16 want = row < rows && step < k ? start[along_k ? row * stride + step : step * stride + row] : 0;
            ASSERT_EQ(got, want) << "row " << row << ", k " << step << " with a stride of " << stride;
        }
    }
}

TEST(CudaUnalignedTile, ElementsComeFromAnyBoundary) {
    for (const bool by_registers : {true, false}) {
        for (Index stride = 61; stride < 70; ++stride) {
            expect_elements<64, 32, true, 128>(0, 70, 57, stride, by_registers);
            expect_elements<64, 32, true, 128>(64, 70, 57, stride, by_registers);
            expect_elements<32, 32, true, 128>(32, 70, 61, stride, by_registers);
            expect_elements<32, 16, false, 64>(0, 57, 31, stride, by_registers);
            expect_elements<32, 16, false, 256>(32, 57, 18, stride, by_registers);  // fewer chunks than threads
        }
    }
}

}  // namespace
}  // namespace tilewise
