// SPDX-License-Identifier: MIT
// A plan looks for the first kernel alone: it is the first of the whole selection, also where kernels run other sizes than the problem's.
#include <gtest/gtest.h>

#include "build/build_testing.hpp"
#include "config/archs.hpp"
#include "device/null/null_device.hpp"
#include "select/dispatcher.hpp"
#include "select/test_problems.hpp"

namespace tilewise {
namespace {

// A layer with channels that are no whole chunks, some with patches as filters, whose taps join, and with limits.
Problem odd_layer(Random& random) {
    Problem p = random_layer(random);
    while (p.op == Op::gemm || p.conv.g != 1) p = random_layer(random);
    (random.chance(50) ? p.conv.c : p.conv.k) = random.between(1, 21);
    if (random.chance(25)) {
        p.conv.pad_before = p.conv.pad_after = filled(2, 0);
        p.conv.stride = p.conv.filter;
        for (int d = 0; d < 2; ++d) p.conv.in[d] = p.conv.filter[d] * random.between(2, 20);
    }
    if (random.chance(20)) p.workspace_bytes = std::int64_t{1} << random.between(10, 26);
    if (random.chance(20)) p.align_bytes = 1 << random.between(1, 3);
    return p;
}

class FirstChoiceTest : public build_testing::BuildTest {};

TEST_F(FirstChoiceTest, IsTheFirstOfAllWithOddChannels) {
    SelectOptions rules;
    rules.strategy = Strategy::rules;
    int padded = 0;
    for (const char* arch : {"sm_80", "sm_90a", "gfx942"}) {
        NullDevice device(arch_named(arch));
        Builder builder(settings_);
        Dispatcher dispatcher(device, builder, nullptr);
        Random random(8);
        for (int i = 0; i < 80; ++i) {
            const Problem problem = odd_layer(random);
            const auto plan = dispatcher.plan(problem, rules);
            const auto all = dispatcher.select(problem, rules);
            ASSERT_EQ(plan.ok(), all.ok() && all->plan.has_value()) << arch << " " << print_problem(problem);
            if (!plan) continue;
            EXPECT_EQ((*plan)->kernel->name, all->plan->kernel->name) << print_problem(problem);
            EXPECT_EQ((*plan)->notes, all->plan->notes) << print_problem(problem);
            padded += (*plan)->notes.empty() ? 0 : 1;
        }
    }
    EXPECT_GT(padded, 20);
}

}  // namespace
}  // namespace tilewise
