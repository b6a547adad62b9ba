// SPDX-License-Identifier: MIT
// How backward weight by patches is cut: what is staged fits, every pixel belongs to one patch, and every part has patches.
#include "family/cuda/patch_wgrad_plan.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "config/archs.hpp"
#include "config/fit.hpp"
#include "config/geometry.hpp"
#include "config/workspace.hpp"
#include "problem/kernel_conv.hpp"
#include "problem/problem_text.hpp"
#include "problem/random_problem.hpp"

namespace tilewise {
namespace {

KernelConfig weight_config(Shape3 tile, Shape3 wave, int merge) {
    KernelConfig c;
    c.op = Op::conv_bwd_weight, c.dtype = c.dtype_b = c.dtype_out = DType::bf16, c.gather = Gather::halo;
    c.tile = tile, c.wave = wave, c.warp_tile = {16, 8, 16}, c.stages = 2, c.two_stage = c.swap_ab = true;
    c.num_groups_to_merge = merge, c.blocks_per_unit = 2, c.vector_a = c.vector_b = 8;
    return c;
}

TEST(PatchWgradPlan, FitsWhateverItPlans) {
    const ArchSpec& arch = arch_named("sm_90a");
    const KernelConfig configs[] = {weight_config({144, 64, 256}, {1, 4, 1}, 16),
                                    weight_config({224, 24, 256}, {2, 1, 2}, 1),
                                    weight_config({192, 64, 128}, {4, 1, 1}, 1)};
    Random random(7);
    int planned = 0;
    for (int i = 0; i < 400; ++i) {
        Problem p = friendly_problem(random);
        if (p.op == Op::gemm) continue;
        p.op = Op::conv_bwd_weight;
        p.conv.g = 16, p.conv.c = p.conv.g * 8 * random.between(1, 9), p.conv.k = p.conv.g * 8 * random.between(1, 9);
        for (const KernelConfig& c : configs) {
            const auto plan = patch_wgrad_plan(p, c, arch);
            if (!plan) continue;
            ++planned;
            const bool by_lines = patch_wgrad_by_lines(c.num_groups_to_merge, c.tile.n);
            EXPECT_LE(plan->shape.bytes(c.stages, c.tile.m, by_lines), block_share_bytes(c, arch));
            EXPECT_LE(plan->tile.rows(), c.tile.k);
            EXPECT_GE(plan->parts, 1);
            EXPECT_LE(plan->parts, plan->patches);
            const Extents out = output_size(p.conv);
            EXPECT_GE(plan->patches * plan->tile.rows(), p.conv.n * product(out)) << print_problem(p);
            EXPECT_EQ(workspace_bytes(ProblemView(p), c, arch, plan->parts),
                      plan->parts * 4 * p.conv.k * (p.conv.c / p.conv.g) * product(p.conv.filter));
        }
    }
    EXPECT_GT(planned, 100);
}

// The least of all numbers that leave as many steps to the longest part.
TEST(PatchWgradPlan, LooksAtEveryLengthOfAPart) {
    for (const int together : {1, 2, 4}) {
        for (std::int64_t steps = 1; steps < 200; ++steps) {
            std::vector<int> wanted, looked_at;
            for (int parts = together; parts <= 256; parts += together) {
                const auto longest = [&](int number) { return (steps + number - 1) / number; };
                if (parts == together || longest(parts) < longest(parts - together)) wanted.push_back(parts);
            }
            for (std::optional<int> next = together; next; next = next_parts(steps, *next, together)) {
                looked_at.push_back(*next);
            }
            ASSERT_EQ(looked_at, wanted) << steps << " steps, " << together << " together";
        }
    }
}

TEST(PatchWgradPlan, SaysWhyItDoesNotFit) {
    const ArchSpec& arch = arch_named("sm_90a");
    const auto refused = [&](std::string_view text, const KernelConfig& c) {
        const auto p = parse_problem(text);
        EXPECT_TRUE(p.ok());
        Rejected why;
        return patch_wgrad_plan(*p, c, arch, &why) ? std::string() : why.have;
    };
    const KernelConfig plain = weight_config({224, 24, 256}, {2, 1, 2}, 1);
    EXPECT_EQ(refused("conv_bwd_weight:n=2,g=2,c=8,k=8,in=9x9,filter=3x3,dtype=bf16", plain), "1 groups of c=4, k=4");
    EXPECT_NE(refused("conv_bwd_weight:n=2,g=2,c=4096,k=4096,in=99x99,filter=9x9,dtype=bf16", plain), "");
    EXPECT_EQ(refused("conv_bwd_weight:n=2,g=2,c=48,k=48,in=9x9,filter=3x3,dtype=bf16", plain), "");
}

}  // namespace
}  // namespace tilewise
