// SPDX-License-Identifier: MIT
// A launch of depthwise kernels on matrix units carries these: division without dividing, and rows that parts share evenly.
#include "kernels/common/depthwise_tiles_args.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.hpp"

namespace tilewise {
namespace {

TEST(LaunchDivisor, DividesLikeDivision) {
    Random random(7);
    for (int i = 0; i < 100000; ++i) {
        const int bits = static_cast<int>(random.between(0, 30)), limit = 1 << static_cast<int>(random.between(0, 30));
        const auto by = static_cast<unsigned>(random.between(1, std::int64_t{1} << bits));
        const int x = static_cast<int>(random.between(0, std::int64_t{limit} * 2 - 1));
        ASSERT_EQ(LaunchDivisor(by).quotient(x), x / static_cast<int>(by)) << x << " / " << by;
        const int few = static_cast<int>(std::min<std::int64_t>(x, (std::int64_t{1} << 31) / by - 1));
        if (few >= 0) {
            ASSERT_EQ(LaunchDivisor(by).small_quotient(few), few / static_cast<int>(by)) << few << " / " << by;
        }
    }
}

TEST(DepthwiseRows, PartsTakeEveryRowOnceAndEvenly) {
    Random random(8);
    for (int i = 0; i < 300; ++i) {
        const int height = static_cast<int>(random.between(1, 60)), tiles = static_cast<int>(random.between(1, 40));
        const int total = height * tiles, parts = static_cast<int>(random.between(1, 2 * total));
        DepthwiseTilesArgs launch{};
        launch.height = LaunchDivisor(static_cast<unsigned>(height));
        launch.part_rows = total / parts, launch.remainder = total % parts;
        std::vector<int> taken(static_cast<std::size_t>(total), 0);
        for (int part = 0; part < parts; ++part) {
            DepthwiseRows left(launch, part);
            const int rows = left.end - left.at;
            ASSERT_TRUE(rows == total / parts || rows == total / parts + 1);
            while (left.at < left.end) {
                const DepthwiseRows::Run run = left.next(launch);
                ASSERT_GT(run.rows, 0);
                ASSERT_LE(run.top + run.rows, height);
                for (int row = 0; row < run.rows; ++row)
                    ++taken[static_cast<std::size_t>(run.tile * height + run.top + row)];
            }
        }
        ASSERT_TRUE(std::all_of(taken.begin(), taken.end(), [](int count) { return count == 1; }));
    }
}

}  // namespace
}  // namespace tilewise
