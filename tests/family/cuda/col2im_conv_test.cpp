// SPDX-License-Identifier: MIT
// Backward data by columns: the product that is launched, what it takes of the workspace, and which problems it is for.
#include <gtest/gtest.h>

#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "family/family.hpp"
#include "family/may_run.hpp"
#include "family/padded_problem.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

constexpr std::string_view kName =
    "grouped_conv_bwd_data_bf16_nhwgc_2d_comp_async_default_intrawave_64x64x64_2x2x1_16x8x16_va8_vb2_dsb_stages4_"
    "splitk2_gather-columns@sm_90a";

KernelConfig column_config() { return parse_kernel_name(kName).value(); }
Problem column_problem(std::string_view text) { return parse_problem(text).value(); }

TEST(Col2imConv, MultipliesPixelsOfDyByAllTaps) {
    const ArchSpec& arch = arch_named("sm_90a");
    const Problem p = column_problem("conv_bwd_data:n=32,c=2,k=288,in=48x48,filter=5x5,stride=2,pad=2,dtype=bf16");
    const auto plan = launch_plan(p, column_config(), arch, 1);
    ASSERT_TRUE(plan);
    const GpuGrid& grid = *plan->gpu();
    EXPECT_EQ(grid.product, (GemmView{32 * 24 * 24, 25 * 2, 288, 1}));
    EXPECT_EQ(grid.blocks, 288 * 2) << "tiles of 64 pixels, in two parts of k";
    EXPECT_EQ(std::int64_t{grid.reduce_blocks} * grid.reduce_threads, 32 * 48 * 48 * 2) << "a thread for each result";
    EXPECT_EQ(plan->workspace_bytes, 2LL * 32 * 24 * 24 * 50 * 4);
}

TEST(Col2imConv, KeepsToTheWorkspace) {
    Problem p = column_problem("conv_bwd_data:n=1,c=2,k=288,in=9x9,filter=3x3,pad=1,dtype=bf16,workspace=11664");
    EXPECT_EQ(p.workspace_bytes, 2 * 81 * 18 * 4);
    EXPECT_TRUE(may_run(ProblemView(p), column_config(), arch_named("sm_90a")));
    Rejected why;
    --p.workspace_bytes;
    EXPECT_FALSE(may_run(ProblemView(p), column_config(), arch_named("sm_90a"), &why));
    EXPECT_EQ(why.rule, "fit_workspace");
}

TEST(Col2imConv, PartsOfKHaveWork) {
    const ArchSpec& arch = arch_named("sm_90a");
    Rejected why;
    const Problem shallow = column_problem("conv_bwd_data:n=1,c=2,k=64,in=9x9,filter=3x3,dtype=bf16");
    EXPECT_FALSE(may_run(ProblemView(shallow), column_config(), arch, &why));
    EXPECT_EQ(why.rule, "fit_split_k") << "taps are no part of the reduction";
}

TEST(Col2imConv, PadsOutputChannelsOnly) {
    const ArchSpec& arch = arch_named("sm_90a");
    const Problem p = column_problem("conv_bwd_data:n=1,c=2,k=135,in=9x9,filter=3x3,dtype=bf16");
    const auto padded = padded_problem(p, column_config(), arch);
    ASSERT_TRUE(padded);
    EXPECT_EQ(padded->problem.conv.k, 136);
    EXPECT_EQ(padded->problem.conv.c, 2) << "rows of 18 weights are whole pairs";
}

TEST(Col2imConv, HasNoCodeForOtherBlocks) {
    const ArchSpec& arch = arch_named("sm_90a");
    ASSERT_TRUE(has_code(column_config(), arch));
    const auto refuses = [&](auto change) {
        KernelConfig c = column_config();
        change(c);
        return !has_code(c, arch);
    };
    EXPECT_TRUE(refuses([](KernelConfig& c) { c.op = Op::conv_fwd; }));
    EXPECT_TRUE(refuses([](KernelConfig& c) { c.layout = Layout::ngchw; }));
    EXPECT_TRUE(refuses([](KernelConfig& c) { c.dtype = c.dtype_b = DType::int8; }));
    EXPECT_TRUE(refuses([](KernelConfig& c) { c.vector_c = 2; }));
    EXPECT_TRUE(refuses([](KernelConfig& c) { c.wave.k = 2; }));
}

TEST(Col2imConv, TakesLongerWithMoreColumns) {
    const ArchSpec& arch = arch_named("sm_90a");
    const auto us = [&](std::string_view text) {
        return predicted_us(WorkProblem(column_problem(text), arch, 1), column_config());
    };
    EXPECT_GT(us("conv_bwd_data:n=32,c=32,k=288,in=48x48,filter=5x5,stride=2,pad=2,dtype=bf16"),
              4 * us("conv_bwd_data:n=32,c=2,k=288,in=48x48,filter=5x5,stride=2,pad=2,dtype=bf16"));
}

}  // namespace
}  // namespace tilewise
