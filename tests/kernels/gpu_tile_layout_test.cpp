// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <set>

#include "kernels/gpu/tile_layout.hpp"

namespace tilewise::gpu {
namespace {

constexpr u32 kBankBytes = kChunkBytes * kBankChunks;

template <class Layout>
class CudaTileLayout : public testing::Test {};

using Layouts = testing::Types<TileLayout<128, 16>, TileLayout<64, 32>, TileLayout<128, 64>, TileLayout<64, 128>,
                               TileLayout<32, 256>, TileLayout<16, 512>>;
TYPED_TEST_SUITE(CudaTileLayout, Layouts);

TYPED_TEST(CudaTileLayout, HasAPlaceForEveryChunkAndNoGaps) {
    std::set<u32> places;
    for (u32 line = 0; line < TypeParam::kBytes / (TypeParam::kChunks * kChunkBytes); ++line) {
        for (u32 chunk = 0; chunk < TypeParam::kChunks; ++chunk) {
            const u32 at = TypeParam::offset(line, chunk);
            EXPECT_EQ(at % kChunkBytes, 0u);
            EXPECT_LT(at, static_cast<u32>(TypeParam::kBytes));
            EXPECT_TRUE(places.insert(at).second) << "line " << line << " chunk " << chunk;
            EXPECT_EQ(TypeParam::byte_offset(line, chunk * kChunkBytes + 5), at + 5);
        }
    }
}

TYPED_TEST(CudaTileLayout, ReadsEightLinesWithoutConflicts) {
    for (u32 line = 0; line + 8 <= TypeParam::kBytes / (TypeParam::kChunks * kChunkBytes); line += 8) {
        for (u32 chunk = 0; chunk < TypeParam::kChunks; ++chunk) {
            std::set<u32> banks;
            for (u32 i = 0; i < 8; ++i) banks.insert(TypeParam::offset(line + i, chunk) % kBankBytes);
            EXPECT_EQ(banks.size(), 8u) << "lines from " << line << ", chunk " << chunk;
        }
    }
}

TYPED_TEST(CudaTileLayout, ReadsEightChunksWithoutConflicts) {
    for (u32 first = 0; first * kChunkBytes < TypeParam::kBytes; first += 8) {  // chunks in the order of lines
        std::set<u32> banks;
        for (u32 i = first; i < first + 8; ++i) {
            banks.insert(TypeParam::offset(i / TypeParam::kChunks, i % TypeParam::kChunks) % kBankBytes);
        }
        EXPECT_EQ(banks.size(), 8u) << "from chunk " << first;
    }
}

}  // namespace
}  // namespace tilewise::gpu
