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

// Kernels that need fewer channels than whole chunks copy less, and may be the best although others come first for whole channels.
TEST_F(FirstChoiceTest, IsTheFirstOfAllWithNarrowerChannels) {
    SelectOptions rules;
    rules.strategy = Strategy::rules;
    NullDevice device(arch_named("sm_90a"));
    Builder builder(settings_);
    Dispatcher dispatcher(device, builder, nullptr);
    for (const char* text : {"conv_fwd:n=16,g=1,c=5,k=71,in=17x8,filter=1x1,dtype=fp16",
                             "conv_fwd:n=43,g=1,c=94,k=31,in=78x78,filter=3x3,stride=2,pad=1,dtype=fp16",
                             "conv_fwd:n=60,g=1,c=82,k=21,in=65x65,filter=1x1,dtype=bf16",
                             "conv_bwd_data:n=24,g=1,c=64,k=1,in=33x33,filter=7x7,pad=3,dtype=fp16",
                             "conv_bwd_weight:n=43,g=1,c=3,k=304,in=73x73,filter=5x5,stride=2,pad=2,dtype=fp16"}) {
        const Problem problem = *parse_problem(text);
        const auto plan = dispatcher.plan(problem, rules);
        const auto all = dispatcher.select(problem, rules);
        ASSERT_TRUE(plan.ok() && all.ok()) << text;
        EXPECT_FALSE((*plan)->notes.empty()) << text;
        EXPECT_EQ((*plan)->kernel->name, all->plan->kernel->name) << text;
        EXPECT_EQ((*plan)->notes, all->plan->notes) << text;
    }
}

}  // namespace
}  // namespace tilewise
