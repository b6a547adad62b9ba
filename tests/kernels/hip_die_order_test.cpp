// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <vector>

#include "kernels/hip/die_order.hpp"

namespace tilewise::hip {
namespace {

struct Plain {
    static constexpr auto stream_k = gpu::StreamK::off;
    static constexpr int dies = 8;
};
struct Shared : Plain {
    static constexpr auto stream_k = gpu::StreamK::tree;
};

template <int dies>
void expect_runs(u32 count) {
    std::vector<int> blocks(count);
    for (u32 block = 0; block < count; ++block) {
        const u32 number = die_order<dies>(block, count);
        ASSERT_LT(number, count) << block;
        ++blocks[number];
        // The block that is next on the same die has the next number.
        if (block + dies < count) {
            ASSERT_EQ(die_order<dies>(block + dies, count), number + 1) << block;
        }
    }
    for (u32 number = 0; number < count; ++number) ASSERT_EQ(blocks[number], 1) << number << " of " << count;
}

TEST(DieOrder, EveryDieHasARunOfTilesAndEveryTileABlock) {
    for (u32 count = 0; count < 200; ++count) {
        expect_runs<1>(count);
        expect_runs<3>(count);
        expect_runs<8>(count);
    }
    expect_runs<8>(304 * 8 + 5);
    EXPECT_EQ(die_order<8>(1, 304), 38u);
    EXPECT_EQ(die_order<1>(7, 304), 7u);
}

TEST(DieOrder, BlocksThatWaitForOthersKeepTheirNumbers) {
    EXPECT_EQ(tile_number<Plain>(1, 304), 38u);
    EXPECT_EQ(tile_number<Shared>(1, 304), 1u);
}

}  // namespace
}  // namespace tilewise::hip
