// SPDX-License-Identifier: MIT
// How forward and backward data by shifted runs of positions are cut: what a tap reads at a result's position is the pixel it should
// read or zeros, stages and weights fit, and every run has one worker.
#include "family/cuda/resident_filter_plan.hpp"

#include <gtest/gtest.h>

#include "config/archs.hpp"
#include "config/geometry.hpp"
#include "family/cuda/patch_wgrad_plan.hpp"
#include "problem/kernel_conv.hpp"
#include "problem/problem_text.hpp"
#include "problem/random_problem.hpp"

namespace tilewise {
namespace {

Extents two(std::int64_t h, std::int64_t w) { return {{h, w}, 2}; }

KernelConfig tap_config(Op op, Shape3 tile, int waves, int stride) {
    KernelConfig c;
    c.op = op, c.dtype = c.dtype_b = c.dtype_out = DType::bf16, c.gather = Gather::halo;
    c.tile = tile, c.wave = {waves, 1, 1}, c.warp_tile = {64, tile.n, 16}, c.stages = 8;
    c.ct_filter = two(3, 3), c.ct_stride = two(stride, stride);
    return c;
}

Problem random_3x3(Random& random, Op op, int stride) {
    Problem p;
    p.op = op, p.dtype_a = p.dtype_b = p.dtype_out = DType::bf16;
    ConvShape& s = p.conv;
    s.n = random.between(1, 5), s.g = random.between(1, 4);
    s.c = s.g * 8 * random.between(1, 14), s.k = s.g * 8 * random.between(1, 14);
    s.filter = two(3, 3), s.stride = two(stride, stride), s.dilation = two(1, 1);
    s.in = two(random.between(3, 20), random.between(3, 20));
    s.pad_before = two(random.between(0, 4), random.between(0, 4));
    s.pad_after = two(random.between(0, 4), random.between(0, 4));
    return p;
}

// The pixel along an axis that a position is, of a walk, or -1 where it is none.
Index pixel_at(const KernelConv& conv, const ResidentFilterConvArgs& s, bool backward, int d, int walk,
               Index position) {
    const Index at = position * (backward ? 1 : conv.stride[d]) + walk - s.pad[d];
    return at >= 0 && at < (backward ? conv.out[d] : conv.in[d]) ? at : -1;
}

// A result at `position` of its line must find by `tap` what it should read, or a zero.
void expect_reads(const KernelConv& conv, const ResidentFilterConvArgs& s, bool backward, int d, Index position,
                  int tap) {
    const TapAlong along = tap_along(tap, static_cast<int>(conv.stride[d]), backward);
    const Index stride = conv.stride[d],
                result = backward ? position * stride + along.remainder - conv.pad[d] % stride : position;
    const Index results = backward ? conv.in[d] : conv.out[d];
    if (result < 0 || result >= results) return;
    Index should = backward ? (result + conv.pad[d] - tap) / stride : result * stride + tap - conv.pad[d];
    if (backward && result + conv.pad[d] < tap) should = -1;
    const Index size = backward ? conv.out[d] : conv.in[d];
    if (should < 0 || should >= size) should = -1;
    const int walk = backward ? 0 : along.remainder;
    // Behind the line's positions the next one begins.
    EXPECT_EQ(pixel_at(conv, s, backward, d, walk, (position + along.shift) % s.extent[d]), should)
        << "axis " << d << ", position " << position << " of " << s.extent[d] << ", tap " << tap;
}

TEST(ResidentFilterPlan, FindsEveryPixelOrZeros) {
    const ArchSpec& arch = arch_named("sm_90a");
    Random random(7);
    int planned = 0;
    for (int i = 0; i < 2000; ++i) {
        const Op op = random.between(0, 1) == 0 ? Op::conv_fwd : Op::conv_bwd_data;
        const auto stride = static_cast<int>(random.between(1, 2));
        const KernelConfig c = tap_config(op, {128, 56, 64}, 2, stride);
        const Problem p = random_3x3(random, op, stride);
        const auto plan = resident_filter_plan(p, c, arch);
        if (!plan) continue;
        ++planned;
        const KernelConv conv = kernel_conv(p);
        const bool backward = op == Op::conv_bwd_data;
        for (int d = 1; d < kMaxKernelDims; ++d) {
            const Index last = backward ? (conv.in[d] - 1 + conv.pad[d] % stride) / stride : conv.out[d] - 1;
            EXPECT_LT(last, plan->shape.extent[d]) << print_problem(p);
            for (Index position = 0; position <= last; ++position) {
                for (int tap = 0; tap < kResidentFilterTaps; ++tap)
                    expect_reads(conv, plan->shape, backward, d, position, tap);
            }
        }
        if (HasFailure()) FAIL() << print_problem(p);
    }
    EXPECT_GT(planned, 1000);
}

TEST(ResidentFilterPlan, FitsAndSharesAllRuns) {
    const ArchSpec& arch = arch_named("sm_90a");
    Random random(8);
    for (int i = 0; i < 1000; ++i) {
        const Op op = random.between(0, 1) == 0 ? Op::conv_fwd : Op::conv_bwd_data;
        const KernelConfig c = tap_config(op, {384, 40, 64}, 3, 1);
        const Problem p = random_3x3(random, op, 1);
        const auto plan = resident_filter_plan(p, c, arch);
        if (!plan) continue;
        const ResidentFilterConvArgs& s = plan->shape;
        const int rows = c.tile.m / c.wave.m;
        EXPECT_LE(plan->shared_bytes, block_share_bytes(c, arch));
        EXPECT_GE(std::int64_t{s.tiles} * rows, p.conv.n * s.extent[1] * s.extent[2]);
        EXPECT_EQ(plan->blocks * c.wave.m, s.jobs * s.parts);
        EXPECT_GE(s.stages, 2);
        // The last tap of a run's last row.
        EXPECT_GE(s.slot_lines, rows + (kResidentFilterTaps - 1) * (s.extent[2] + 1));
        const std::int64_t summed = (op == Op::conv_fwd ? p.conv.c : p.conv.k) / p.conv.g;
        const std::int64_t steps = (s.lines - 1) * kResidentFilterFullSteps + s.last_steps;
        // Groups begin at most half a step before their first channel.
        EXPECT_GE(steps * kResidentFilterStepChannels, summed + (summed % kResidentFilterStepChannels == 0 ? 0 : 8));
    }
}

TEST(ResidentFilterPlan, SaysWhyItDoesNotFit) {
    const ArchSpec& arch = arch_named("sm_90a");
    const KernelConfig c = tap_config(Op::conv_fwd, {128, 64, 64}, 2, 1);
    const auto refused = [&](std::string_view text) {
        const auto p = parse_problem(text);
        EXPECT_TRUE(p.ok());
        Rejected why;
        return resident_filter_plan(*p, c, arch, &why) ? std::string() : why.have;
    };
    EXPECT_EQ(refused("conv_fwd:n=2,g=1,c=64,k=64,in=9x9,filter=3x3,pad=1x1,dilation=2x2,dtype=bf16"), "dilation 2");
    EXPECT_EQ(refused("conv_fwd:n=2,g=1,c=64,k=64,in=9x9,filter=3x3,pad=1x1,dtype=bf16,epilogue=bias+add+relu,beta=1"),
              "");
    EXPECT_NE(refused("conv_fwd:n=2,g=1,c=256,k=64,in=9x9,filter=3x3,pad=1x1,dtype=bf16"), "");
    EXPECT_NE(refused("conv_fwd:n=2,g=1,c=64,k=64,in=999x999,filter=3x3,pad=1x1,dtype=bf16"), "");
    EXPECT_EQ(refused("conv_fwd:n=2,g=1,c=64,k=64,in=9x9,filter=3x3,pad=1x1,dtype=bf16"), "");
}

}  // namespace
}  // namespace tilewise
