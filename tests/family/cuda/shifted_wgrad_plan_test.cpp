// SPDX-License-Identifier: MIT
// How backward weight by shifted runs of positions is cut: the stages fit, every position belongs to a run, every tap to one block,
// and what a tap reads has been fetched.
#include "family/cuda/shifted_wgrad_plan.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "config/archs.hpp"
#include "config/fit.hpp"
#include "config/geometry.hpp"
#include "config/workspace.hpp"
#include "problem/kernel_conv.hpp"
#include "problem/problem_text.hpp"
#include "problem/random_problem.hpp"

namespace tilewise {
namespace {

KernelConfig tap_config(Shape3 tile, Shape3 wave, int parts, bool two_stage) {
    KernelConfig c;
    c.op = Op::conv_bwd_weight, c.dtype = c.dtype_b = c.dtype_out = DType::bf16, c.gather = Gather::halo;
    c.tile = tile, c.wave = wave, c.warp_tile = {64, tile.n, 16}, c.stages = 4, c.swap_ab = true;
    c.cluster_k = true, c.split_k = parts, c.two_stage = two_stage, c.vector_a = c.vector_b = 8;
    return c;
}

TEST(ShiftedWgradPlan, ImagesSmallerThanTheFilterHaveWholeLines) {
    const ArchSpec& arch = arch_named("sm_90a");
    const KernelConfig c = tap_config({576, 64, 192}, {3, 1, 1}, 2, true);
    const auto line = [&](const char* in) {
        const auto p = parse_problem(
            fmt::format("conv_bwd_weight:n=5,g=1,c=32,k=48,in={},filter=3x3x3,pad=1x1x1,dtype=bf16,layout=ndhwgc", in));
        const auto plan = shifted_wgrad_plan(*p, c, arch);
        return plan ? plan->shape.line : 0;
    };
    EXPECT_EQ(line("4x4x7"), 32);
    EXPECT_EQ(line("4x1x7"), 64) << "the first tap of a plane lies before the last of the plane before";
}

TEST(ShiftedWgradPlan, FetchesWhatEveryTapReads) {
    const ArchSpec& arch = arch_named("sm_90a");
    const KernelConfig configs[] = {tap_config({576, 64, 128}, {3, 1, 1}, 2, true),
                                    tap_config({320, 32, 128}, {5, 1, 1}, 4, false)};
    Random random(11);
    int planned = 0;
    for (int i = 0; i < 1200; ++i) {
        Problem p = friendly_problem(random);
        if (p.op == Op::gemm) continue;
        p.op = Op::conv_bwd_weight;
        p.conv.g = 2, p.conv.c = p.conv.g * 8 * random.between(1, 12), p.conv.k = p.conv.g * 8 * random.between(1, 12);
        const KernelConv conv = kernel_conv(p);
        for (const KernelConfig& c : configs) {
            const auto plan = shifted_wgrad_plan(p, c, arch);
            if (!plan) continue;
            ++planned;
            const ShiftedWgradArgs& s = plan->shape;
            EXPECT_GE(s.stages, 2);
            EXPECT_LE(s.stages * (c.tile.k * c.tile.n * 2 + s.x_bytes()), block_share_bytes(c, arch));
            EXPECT_GE(std::int64_t{s.steps} * c.tile.k, p.conv.n * s.extent[0] * s.extent[1] * s.extent[2]);
            EXPECT_LE(plan->parts, s.steps) << print_problem(p);
            EXPECT_EQ(plan->parts % c.split_k, 0);
            EXPECT_LE(s.block_taps * s.line, c.tile.m);
            for (int tap = 0; tap < tap_count(conv); ++tap) {
                const TapPlace at = tap_place(conv, s, tap),
                               first = tap_place(conv, s, tap / s.block_taps * s.block_taps);
                EXPECT_LE(at.shift - first.shift + c.tile.k, s.x_boxes * s.box_lines) << print_problem(p);
                EXPECT_GE(at.shift, first.shift);
                EXPECT_LT(at.walk, s.x_walks());
                const bool is_second = s.line < 64 && tap % s.block_taps % 2 == 1;
                if (is_second) {
                    EXPECT_GE(at.shift, tap_place(conv, s, tap - 1).shift) << print_problem(p);
                }
            }
            EXPECT_EQ(workspace_bytes(ProblemView(p), c, arch, plan->parts),
                      c.two_stage ? plan->parts / c.split_k * 4 * p.conv.k * conv.c * tap_count(conv) : 0);
        }
    }
    EXPECT_GT(planned, 100);
}

// Short lines in long stages, so that small boxes are the cheapest: with a stride there would be more of them than lanes.
TEST(ShiftedWgradPlan, HasALaneForEveryCopy) {
    KernelConfig c = tap_config({64, 288, 256}, {1, 3, 1}, 2, true);
    c.swap_ab = false, c.warp_tile = {64, 96, 16};
    int planned = 0;
    for (const std::string_view stride : {"1x1x1", "2x1x1", "1x2x1", "2x2x1"}) {
        const auto p = parse_problem(fmt::format(
            "conv_bwd_weight:n=4,g=1,c=16,k=8,in=17x18x10,filter=2x2x3,stride={},pad=0x1x1,dtype=bf16", stride));
        ASSERT_TRUE(p.ok());
        const auto plan = shifted_wgrad_plan(*p, c, arch_named("sm_90a"));
        if (!plan) continue;
        ++planned;
        const ShiftedWgradArgs& s = plan->shape;
        EXPECT_LE(shifted_wgrad_y_lines(c.tile.m) + s.x_walks() * s.x_boxes, kShiftedWgradMostCopies) << stride;
    }
    EXPECT_GE(planned, 3);
}

TEST(ShiftedWgradPlan, SaysWhyItDoesNotFit) {
    const ArchSpec& arch = arch_named("sm_90a");
    const KernelConfig c = tap_config({576, 64, 128}, {3, 1, 1}, 8, false);
    const auto refused = [&](std::string_view text) {
        const auto p = parse_problem(text);
        EXPECT_TRUE(p.ok());
        Rejected why;
        return shifted_wgrad_plan(*p, c, arch, &why) ? std::string() : why.have;
    };
    EXPECT_EQ(refused("conv_bwd_weight:n=2,g=1,c=64,k=64,in=9x9,filter=3x3,pad=1x1,dtype=bf16"),
              "split_k 8 of 2 steps");
    EXPECT_EQ(refused("conv_bwd_weight:n=2,g=1,c=64,k=64,in=99x99,filter=3x3,stride=9x9,dtype=bf16"),
              "a filter of 3, stride 9, dilation 1, pad 0");
    EXPECT_NE(refused("conv_bwd_weight:n=2,g=1,c=64,k=64,in=999x999,filter=3x3,dtype=bf16"), "");
    EXPECT_EQ(refused("conv_bwd_weight:n=32,g=1,c=64,k=64,in=9x9,filter=3x3,dtype=bf16"), "");
}

}  // namespace
}  // namespace tilewise
