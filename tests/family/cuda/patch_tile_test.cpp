// SPDX-License-Identifier: MIT
// How forward and backward data by patches are cut: tiles cover all outputs, what a block keeps fits and does not overlap, and
// boxes are what the copy engine can move.
#include "family/cuda/patch_tile.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "config/family_id.hpp"
#include "config/geometry.hpp"
#include "family/may_run.hpp"
#include "problem/kernel_conv.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

KernelConfig config_of(bool forward, bool boxes, int merge) {
    KernelConfig c;
    c.op = forward ? Op::conv_fwd : Op::conv_bwd_data, c.dtype = c.dtype_b = c.dtype_out = DType::bf16;
    c.gather = Gather::halo, c.layout = Layout::nhwgc, c.arch = "sm_90a", c.ndim = 2;
    c.tile = {256, 32, 16}, c.wave = {4, 2, 1}, c.warp_tile = {16, 8, 16}, c.stages = 2, c.persistent = true;
    c.pipeline = boxes ? Pipeline::mem : Pipeline::comp_async;
    c.vector_a = c.vector_c = 8, c.vector_b = 1, c.num_groups_to_merge = merge, c.blocks_per_unit = 2;
    return c;
}

Problem random_problem(Random& random, Op op) {
    Problem p;
    p.op = op, p.dtype_a = p.dtype_b = p.dtype_out = DType::bf16, p.layout = Layout::nhwgc;
    ConvShape& s = p.conv;
    s.in = s.filter = s.stride = s.dilation = s.pad_before = s.pad_after = filled(2, 1);
    s.n = random.between(1, 70), s.g = 32;
    s.c = s.k = s.g * (random.chance(30) ? 8 * random.between(1, 7) : std::int64_t{1} << random.between(0, 4));
    for (int i = 0; i < 2; ++i) {
        s.in[i] = random.between(7, 300), s.filter[i] = random.between(1, 7), s.stride[i] = random.between(1, 4);
        s.dilation[i] = random.chance(70) ? 1 : 2, s.pad_before[i] = s.pad_after[i] = s.filter[i] / 2;
    }
    return p;
}

void expect_sound(const PatchConvPlan& choice, const KernelConv& conv, const KernelConfig& c, const ArchSpec& arch) {
    const PatchConvLayout& plan = choice.plan;
    const PatchShape& patch = plan.patch;
    EXPECT_LE(choice.tile.rows(), c.tile.m);
    EXPECT_LE(plan.total_bytes, block_room_bytes(c, arch));
    EXPECT_LE(plan.barriers, plan.patches);
    EXPECT_EQ(plan.total_bytes, plan.patches + choice.kernel.buffers * plan.patch_bytes);
    EXPECT_GE(patch.phase * patch.steps[2], patch.columns);
    // The last tap of the tile's last output is inside of the patch.
    const PatchAxes axes = patch_axes(conv, c.op == Op::conv_bwd_data);
    int last[kMaxKernelDims];
    for (int d = 0; d < kMaxKernelDims; ++d) last[d] = axes.axis[d].span - 1;
    const int place = patch.pixel_of(choice.tile.images - 1, choice.tile.extent[0] - 1, choice.tile.extent[1] - 1,
                                     choice.tile.extent[2] - 1) +
                      patch.tap_distance(last[0], last[1], last[2]);
    EXPECT_LT(place, patch.pixels());
    if (family_of(c) != FamilyId::patch_box_conv) return;
    EXPECT_EQ(plan.patches % kPatchBoxAlign, 0);
    EXPECT_EQ(patch.plane * patch.pitch % (plan.swizzle > 0 ? kPatchBoxAlign : kPatchPlainBoxAlign), 0);
    EXPECT_EQ(plan.patch_bytes % kPatchPlainBoxAlign, 0) << "every buffer begins where a box may";
    if (plan.out_stages > 0) {
        EXPECT_EQ(plan.out % kPatchBoxAlign, 0);
        EXPECT_GE(plan.out_bytes, choice.tile.rows() * plan.out_pitch);
        EXPECT_LE(plan.out + plan.out_stages * plan.out_bytes + kPatchScratchBytes, plan.barriers);
    }
    EXPECT_EQ(patch.pitch, patch.chunks * kPatchChunkBytes);
    EXPECT_TRUE(is_patch_box_line(patch.chunks));
    EXPECT_LE(std::max(patch.phase * patch.steps[2], patch.height), kPatchMostBox);
    EXPECT_LE(patch.images * patch.depth * patch.height * patch.phase, patch.plane);
}

TEST(PatchTile, WhateverItChoosesFits) {
    Random random(2026);
    const ArchSpec& arch = arch_named("sm_90a");
    int chosen = 0;
    for (int i = 0; i < 400; ++i) {
        const KernelConfig c = config_of(random.chance(50), random.chance(50), 1 << random.between(0, 4));
        const Problem p = random_problem(random, c.op);
        SCOPED_TRACE(print_problem(p));
        if (check_problem(p) || !may_run(ProblemView(p), c, arch)) continue;
        const auto choice = patch_conv_plan(p, c, arch);
        ASSERT_TRUE(choice);
        expect_sound(*choice, kernel_conv(p), c, arch);
        ++chosen;
    }
    EXPECT_GT(chosen, 50);
}

TEST(PatchTile, BoxesTakePixelsThatTheSwizzleKnows) {
    const ArchSpec& arch = arch_named("sm_90a");
    const auto misfit = [&](std::string_view text, int merge) {
        const auto p = parse_problem(text);
        EXPECT_TRUE(p.ok());
        return !may_run(ProblemView(*p), config_of(true, true, merge), arch);
    };
    const std::string rest = ",in=14x14,filter=3x3,stride=1,pad=1,dtype=bf16,layout=nhwgc";
    EXPECT_FALSE(misfit("conv_fwd:n=4,g=32,c=256,k=256" + rest, 4)) << "64 bytes";
    EXPECT_FALSE(misfit("conv_fwd:n=4,g=24,c=384,k=384" + rest, 1)) << "32 bytes";
    EXPECT_FALSE(misfit("conv_fwd:n=4,g=24,c=192,k=192" + rest, 1)) << "16 bytes";
    EXPECT_TRUE(misfit("conv_fwd:n=4,g=24,c=96,k=96" + rest, 12)) << "96 bytes";
    EXPECT_TRUE(misfit("conv_fwd:n=4,g=32,c=512,k=512" + rest, 8)) << "256 bytes";
}

}  // namespace
}  // namespace tilewise
