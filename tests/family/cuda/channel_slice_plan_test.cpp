// SPDX-License-Identifier: MIT
// How depthwise layers are cut into slices: what is staged fits, and every output belongs to one piece of one tile.
#include "family/cuda/channel_slice_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "config/archs.hpp"
#include "config/depthwise_spec.hpp"
#include "config/family_id.hpp"
#include "problem/facts.hpp"
#include "problem/problem_text.hpp"
#include "problem/random_problem.hpp"

namespace tilewise {
namespace {

KernelConfig slice_config(Op op, const Extents& filter, const Extents& stride, int own_rows, int blocks) {
    KernelConfig c;
    c.op = op, c.dtype = c.dtype_b = c.dtype_out = DType::bf16, c.specialization = Specialization::depthwise;
    c.pipeline = Pipeline::basic_async_v1, c.blocks_per_unit = blocks, c.ct_filter = filter, c.ct_stride = stride;
    c.tile = {16 * own_rows, 64, 1}, c.wave = {8, 1, 1}, c.warp_tile = {2, 64, 1};
    return c;
}

TEST(ChannelSlicePlan, CoversWhateverItPlans) {
    const ArchSpec& arch = arch_named("sm_90a");
    Random random(11);
    int planned = 0;
    for (int i = 0; i < 600; ++i) {
        Problem p = friendly_problem(random);
        if (p.op == Op::gemm || p.op == Op::conv_bwd_weight || p.conv.in.rank != 2) continue;
        p.conv.g = p.conv.c = p.conv.k = 8 * random.between(1, 40);
        const int own_rows = static_cast<int>(random.between(1, 2));
        const KernelConfig c =
            slice_config(p.op, p.conv.filter, p.conv.stride, own_rows, static_cast<int>(random.between(1, 4)));
        ASSERT_TRUE(family_of(c) == FamilyId::depthwise_channel_slice);
        ASSERT_EQ(slice_own_rows(c), own_rows);
        const auto plan = channel_slice_plan(p, c, arch);
        if (!plan) continue;
        ++planned;
        const Extents out = p.op == Op::conv_bwd_data ? p.conv.in : output_size(p.conv);
        EXPECT_LE(plan->shared_bytes, slice_shared_bytes(c)) << print_problem(p);
        const auto covers = [](std::int64_t count, std::int64_t each, std::int64_t size) {
            return count * each >= size && (count - 1) * each < size;
        };
        EXPECT_TRUE(covers(plan->bands, plan->rows, out[0])) << print_problem(p);
        EXPECT_TRUE(covers(plan->segments, plan->columns, out[1])) << print_problem(p);
        EXPECT_EQ(plan->tiles % plan->bands, 0);
        EXPECT_TRUE(covers(plan->tiles / plan->bands, plan->images, p.conv.n)) << print_problem(p);
        EXPECT_GT(plan->cycles, 0);
    }
    EXPECT_GT(planned, 50);
}

TEST(ChannelSlicePlan, SaysWhyItDoesNotFit) {
    const auto p = parse_problem("conv_fwd:n=1,g=64,c=64,k=64,in=9x40000,filter=3x3,pad=1x1,dtype=bf16");
    ASSERT_TRUE(p.ok());
    Rejected why;
    const KernelConfig c = slice_config(p->op, p->conv.filter, p->conv.stride, 1, 1);
    EXPECT_FALSE(channel_slice_plan(*p, c, arch_named("sm_90a"), &why));
    EXPECT_EQ(why.have, "a row of outputs that takes 20482304 bytes of shared memory");
    EXPECT_NE(why.need, "");
}

}  // namespace
}  // namespace tilewise
