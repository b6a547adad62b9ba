// SPDX-License-Identifier: MIT
#include "family/cpu/partition.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/random.hpp"

namespace tilewise {
namespace {

// Every element of C belongs to exactly one rectangle of each part of k, and rectangles are cut between micro-kernels.
TEST(Partition, CoversEveryElementOnce) {
    Random random(7);
    for (int i = 0; i < 300; ++i) {
        KernelConfig c;
        c.warp_tile = {static_cast<int>(random.between(1, 14)), static_cast<int>(random.between(1, 64)), 1};
        c.split_k = random.chance(30) ? 3 : 1;
        const GemmView gemm{random.between(1, 60), random.between(1, 90), random.between(1, 20000),
                            random.between(1, 4)};
        const CpuParts parts = partition(gemm, c, static_cast<int>(random.between(1, 16)));
        std::map<std::array<std::int64_t, 4>, int> seen;
        for (const KernelPart& part : parts.run) {
            EXPECT_EQ(part.m_begin % c.warp_tile.m, 0);
            EXPECT_EQ(part.n_begin % c.warp_tile.n, 0);
            for (Index b = part.batch_begin; b < part.batch_end; ++b) {
                for (Index m = part.m_begin; m < part.m_end; ++m) {
                    for (Index n = part.n_begin; n < part.n_end; ++n) ++seen[{b, m, n, part.k_part}];
                }
            }
        }
        ASSERT_EQ(static_cast<std::int64_t>(seen.size()), gemm.batch * gemm.m * gemm.n * c.split_k);
        for (const auto& entry : seen) ASSERT_EQ(entry.second, 1);
        EXPECT_EQ(parts.reduce.empty(), c.split_k == 1);
    }
}

TEST(Partition, SharesOfTheLargestSizesAreEven) {
    constexpr std::int64_t kSize = std::int64_t{1} << 48, kParts = 100000;
    for (const std::int64_t i : {std::int64_t{0}, kParts / 3, kParts - 1}) {
        const auto [begin, end] = share(kSize, 1, kParts, i);
        EXPECT_NEAR(static_cast<double>(end - begin), static_cast<double>(kSize) / kParts, 1) << i;
    }
    EXPECT_EQ(share(kSize, 1, kParts, kParts - 1).second, kSize);
}

TEST(Partition, ASmallProductStaysOnOneThread) {
    KernelConfig c;
    c.warp_tile = {6, 16, 1};
    EXPECT_EQ(partition({64, 64, 64, 1}, c, 8).threads, 1);
    EXPECT_EQ(partition({1024, 1024, 1024, 1}, c, 8).threads, 8);
    EXPECT_EQ(partition({1024, 1024, 1024, 1}, c, 8).run.size(), 8u);
}

}  // namespace
}  // namespace tilewise
