// SPDX-License-Identifier: MIT
// Random operands: reports name a seed, so what it stands for must never change.
#include "measure/random_fill.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "measure/element.hpp"

namespace tilewise {
namespace {

TEST(RandomFill, TheBitsOfASeedAreKnown) {
    EXPECT_EQ(random_bits(0, 0), 0xe220a8397b1dcdafu);
    EXPECT_EQ(random_bits(0, 1), 0x6e789e6aa1b965f4u);
    EXPECT_EQ(random_bits(0, 2), 0x06c45d188009454fu);
    EXPECT_EQ(random_unit(0, 0), std::ldexp(static_cast<double>(0xe220a8397b1dcdafu >> 11), -53));
}

TEST(RandomFill, ValuesFollowFromTheBitsWithOneRoundingEach) {
    for (const auto& [low, width] : {std::pair{-1.0, 2.0}, {0.5, 1.5}, {-127.0, 255.0}}) {
        for (std::uint64_t i = 0; i < 1000; ++i) {
            volatile const double product = width * random_unit(7, i);  // rounded: nothing can be fused with it
            EXPECT_EQ(random_value(low, width, false, 7, i), low + product);
            EXPECT_EQ(random_value(low, width, true, 7, i), std::floor(low + product));
        }
    }
}

TEST(RandomFill, RowsAreNumberedThroughAndGapsAreLeft) {
    const StoredRows shape = {2, 3, 5, 7, 40};
    for (const DType type :
         {DType::fp32, DType::fp16, DType::bf16, DType::fp8, DType::bf8, DType::int8, DType::int32}) {
        const auto buffer = GuardedBuffer::make("x", type, shape, 16);
        ASSERT_TRUE(buffer.ok());
        fill_random(*buffer, operand_range(type), 9);
        EXPECT_EQ(buffer->damage(), std::nullopt);
        const Draw draw = draw_of(type, operand_range(type));
        std::uint64_t counter = 0;
        for (std::int64_t line = 0; line < 6; ++line) {
            for (std::int64_t i = 0; i < 5; ++i) {
                double got = 0;
                decode(type, buffer->row(line / 3, line % 3) + i * bytes_of(type), 1, 1, &got);
                EXPECT_EQ(got, rounded_to(type, random_value(draw.low, draw.width, draw.whole, 9, counter++)));
            }
        }
    }
}

}  // namespace
}  // namespace tilewise
