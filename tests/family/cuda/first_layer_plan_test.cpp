// SPDX-License-Identifier: MIT
// How forward of first layers is cut: what a block keeps fits, and its tiles cover all outputs.
#include "family/cuda/first_layer_plan.hpp"

#include <gtest/gtest.h>

#include "config/archs.hpp"
#include "config/geometry.hpp"
#include "family/cuda/patch_tile.hpp"
#include "problem/facts.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

KernelConfig first_config() {
    KernelConfig c;
    c.op = Op::conv_fwd, c.dtype = c.dtype_b = c.dtype_out = DType::bf16, c.gather = Gather::halo;
    c.tile = {256, 64, 16}, c.wave = {4, 1, 1}, c.warp_tile = {16, 8, 16}, c.stages = 2, c.persistent = true;
    c.vector_c = 8, c.blocks_per_unit = 2;
    return c;
}

Problem problem_of(std::string_view text) {
    const auto p = parse_problem(text);
    EXPECT_TRUE(p.ok());
    return *p;
}

TEST(FirstLayerPlan, FitsAndCoversAllOutputs) {
    const ArchSpec& arch = arch_named("sm_90a");
    const KernelConfig c = first_config();
    for (const std::string_view text :
         {"conv_fwd:n=64,g=1,c=3,k=64,in=224x224,filter=7x7,stride=2,pad=3,dtype=bf16",
          "conv_fwd:n=5,g=2,c=6,k=160,in=19x21,filter=3x3,stride=2,pad=1,dtype=bf16",
          "conv_fwd:n=3,g=1,c=4,k=16,in=9x20x31,filter=2x3x5,stride=2,pad=1,dtype=bf16"}) {
        const Problem p = problem_of(text);
        const auto plan = first_layer_plan(p, c, arch);
        ASSERT_TRUE(plan) << text;
        const FirstLayerConvArgs& launch = plan->launch;
        EXPECT_LE(launch.total_bytes, block_room_bytes(c, arch));
        EXPECT_LE(launch.tile.rows(), c.tile.m);
        EXPECT_GE(std::int64_t{launch.tile_count()} * launch.tile.rows(), p.conv.n * product(output_size(p.conv)));
        EXPECT_GE(launch.column_tiles * c.tile.n, p.conv.k / p.conv.g);
        EXPECT_EQ(plan->blocks, p.conv.g * launch.column_tiles * launch.blocks_per_slice);
        EXPECT_EQ(launch.patch.width() % 2, 0) << "two pixels are a chunk";
    }
}

TEST(FirstLayerPlan, TakesFewChannelsAndEvenStridesOnly) {
    const ArchSpec& arch = arch_named("sm_90a");
    for (const std::string_view text :
         {"conv_fwd:n=2,g=1,c=5,k=64,in=20x20,filter=3x3,stride=2,dtype=bf16",
          "conv_fwd:n=2,g=1,c=3,k=64,in=20x20,filter=3x3,stride=1,dtype=bf16",
          "conv_fwd:n=2,g=1,c=3,k=64,in=20x20,filter=3x3,stride=2,dilation=2,dtype=bf16"}) {
        Rejected why;
        EXPECT_FALSE(first_layer_plan(problem_of(text), first_config(), arch, &why)) << text;
        EXPECT_NE(why.need, "");
    }
}

}  // namespace
}  // namespace tilewise
