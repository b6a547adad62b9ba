// SPDX-License-Identifier: MIT
#include "measure/operand_arena.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "config/arch_catalog.hpp"
#include "device/cpu/cpu_device.hpp"
#include "device/cpu/host_cpu.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

struct OperandArenaTest : testing::Test {
    ArchCatalog catalog = ArchCatalog::embedded().value();
    std::unique_ptr<Device> device = std::move(make_cpu_device(**host_cpu_arch(catalog), 1).value());
    const Problem problem = parse_problem("gemm:m=64,n=64,k=64,dtype=fp32,layout=rcr,epilogue=bias,scale=row").value();
    OperandArena arena{*device};
};

TEST_F(OperandArenaTest, ExceedTheCacheButNotTheLimits) {
    const std::int64_t each = 3 * 64 * 64 * 4 + 3 * 256;
    const auto count = [&](std::int64_t cache, std::int64_t most_bytes, int most) {
        return static_cast<std::int64_t>(arena.sets(problem, {cache, most_bytes, most})->size());
    };
    EXPECT_GT((count(1 << 20, 1 << 30, 1000) - 1) * each, 1 << 20) << "also without the set in use";
    EXPECT_LE(count(1 << 20, 1 << 30, 1000), (1 << 20) / each + 2);
    EXPECT_EQ(count(1 << 30, 1 << 30, 5), 5);
    EXPECT_EQ(count(1 << 30, 10 * each, 1000), 10);
    EXPECT_EQ(count(1 << 30, 1, 1000), 1) << "one set is always there";
}

TEST_F(OperandArenaTest, HoldWhatTheProblemHasAndNoZeros) {
    const auto sets = arena.sets(problem, {.most_sets = 2});
    ASSERT_TRUE(sets.ok());
    const Operands& o = sets->front();
    EXPECT_TRUE(o.a && o.b && o.c && o.bias && o.scale_a && o.scale_b);
    EXPECT_EQ(o.d[0], nullptr);
    int zeros = 0;
    for (int i = 0; i < 64 * 64; ++i) zeros += static_cast<const float*>(o.a)[i] == 0 ? 1 : 0;
    EXPECT_LT(zeros, 4);
    EXPECT_NE(static_cast<const float*>(o.a)[0], static_cast<const float*>(sets->back().a)[0]);
}

TEST_F(OperandArenaTest, HandsOutTheSameMemoryAgainAndKeepsInputsFromOutputs) {
    const auto before = arena.sets(problem, {.most_sets = 2});
    ASSERT_TRUE(before.ok());
    auto* c = static_cast<float*>((*before)[1].c);
    std::fill(c, c + 64 * 64, 7.0f);
    const Problem smaller = parse_problem("gemm:m=16,n=16,k=16,dtype=fp32,layout=rcr").value();
    const auto after = arena.sets(smaller, {.most_sets = 1});
    ASSERT_TRUE(after.ok());
    EXPECT_EQ(after->front().a, before->front().a) << "nothing is allocated or filled anew";
    const auto again = arena.sets(problem, {.most_sets = 2});
    EXPECT_EQ((*again)[1].c, c);
    const auto* a = static_cast<const float*>((*again)[1].a);
    EXPECT_TRUE(std::none_of(a, a + 64 * 64, [](float value) { return value == 7.0f; }));
}

TEST_F(OperandArenaTest, HasOneWorkspaceForAll) {
    void* const small = *arena.workspace(100);
    EXPECT_EQ(*arena.workspace(50), small);
    EXPECT_NE(*arena.workspace(1 << 20), nullptr);
}

}  // namespace
}  // namespace tilewise
