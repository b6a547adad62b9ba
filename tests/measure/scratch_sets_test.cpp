// SPDX-License-Identifier: MIT
#include "measure/scratch_sets.hpp"

#include <gtest/gtest.h>

#include "config/arch_catalog.hpp"
#include "device/cpu/cpu_device.hpp"
#include "device/cpu/host_cpu.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

struct ScratchSetsTest : testing::Test {
    ArchCatalog catalog = ArchCatalog::embedded().value();
    std::unique_ptr<Device> device = std::move(make_cpu_device(**host_cpu_arch(catalog), 1).value());
    const Problem problem = parse_problem("gemm:m=64,n=64,k=64,dtype=fp32,layout=rcr,epilogue=bias,scale=row").value();
};

TEST_F(ScratchSetsTest, ExceedTheCacheButNotTheLimits) {
    const std::int64_t each = 3 * 64 * 64 * 4;
    const auto count = [&](std::int64_t cache, std::int64_t most_bytes, int most) {
        return static_cast<std::int64_t>(ScratchSets::make(problem, *device, cache, most_bytes, most)->sets().size());
    };
    EXPECT_GT((count(1 << 20, 1 << 30, 1000) - 1) * each, 1 << 20) << "also without the set in use";
    EXPECT_LE(count(1 << 20, 1 << 30, 1000), (1 << 20) / each + 2);
    EXPECT_EQ(count(1 << 30, 1 << 30, 5), 5);
    EXPECT_EQ(count(1 << 30, 10 * each, 1000), 10);
    EXPECT_EQ(count(1 << 30, 1, 1000), 1) << "one set is always there";
}

TEST_F(ScratchSetsTest, HoldWhatTheProblemHasAndNoZeros) {
    const auto scratch = ScratchSets::make(problem, *device, 0, 1 << 30, 2);
    ASSERT_TRUE(scratch.ok());
    const Operands& o = scratch->sets().front();
    EXPECT_TRUE(o.a && o.b && o.c && o.bias && o.scale_a && o.scale_b);
    EXPECT_EQ(o.d[0], nullptr);
    int zeros = 0;
    for (int i = 0; i < 64 * 64; ++i) zeros += static_cast<const float*>(o.a)[i] == 0 ? 1 : 0;
    EXPECT_LT(zeros, 4);
    EXPECT_NE(static_cast<const float*>(o.a)[0], static_cast<const float*>(scratch->sets().back().a)[0]);
}

}  // namespace
}  // namespace tilewise
