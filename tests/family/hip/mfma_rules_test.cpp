// SPDX-License-Identifier: MIT
// Kernels on MFMA refuse offsets beyond 31 bits, launches beyond HIP's grid, lines longer than a block. A ring of direct copies has
// as many buffers as its waits can count.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "config/family_id.hpp"
#include "family/family.hpp"
#include "family/may_run.hpp"
#include "problem/problem_text.hpp"
#include "registry/rule_set_registry.hpp"

namespace tilewise {
namespace {

const ArchSpec& arch() { return arch_named("gfx942"); }

std::vector<KernelConfig> kernels_for(const Problem& problem) {
    const auto configs = configs_of(arch(), problem.op, {problem.dtype_a, problem.dtype_b}, RuleSet::standard);
    return configs.ok() ? *configs : std::vector<KernelConfig>();
}

// How many MFMA kernels of the set may run the problem, of those that are asked for.
template <class Wanted>
int count_runnable(const char* text, Wanted wanted) {
    const Problem problem = *parse_problem(text);
    int count = 0;
    for (const KernelConfig& c : kernels_for(problem)) {
        const FamilyId id = family_of(c);
        if ((id != FamilyId::mfma_conv && id != FamilyId::mfma_gemm) || !wanted(c)) continue;
        count += may_run(ProblemView(problem), c, arch());
    }
    return count;
}

TEST(MfmaRules, DyOfChannelsFirstEndsBelowTwoGiB) {
    const auto counts = [](const char* text) {
        const auto looks_up = [](bool far) { return [far](const KernelConfig& c) { return c.split_image == far; }; };
        return std::pair(count_runnable(text, looks_up(false)), count_runnable(text, looks_up(true)));
    };
    const auto [near, far] =
        counts("conv_bwd_weight:n=1,g=1,c=16,k=240,in=2048x2048,filter=3x3,pad=1x1,dtype=bf16,layout=ngchw");
    EXPECT_GT(near, 0);
    EXPECT_GT(far, 0);
    const auto [beyond, still] =
        counts("conv_bwd_weight:n=1,g=1,c=16,k=480,in=2048x2048,filter=3x3,pad=1x1,dtype=bf16,layout=ngchw");
    EXPECT_EQ(beyond, 0) << "channels from 256 on lie 2 GiB behind the first";
    EXPECT_GT(still, 0);
}

TEST(MfmaRules, WeightsOfMergedGroupsEndBelowTwoGiB) {
    const auto merges = [](const KernelConfig& c) { return c.num_groups_to_merge == 8; };
    EXPECT_GT(count_runnable("conv_fwd:n=1,g=8,c=512,k=512,in=8x8,filter=3x3,pad=1x1,dtype=bf16", merges), 0);
    EXPECT_EQ(count_runnable("conv_fwd:n=1,g=8,c=32768,k=32768,in=8x8,filter=3x3,pad=1x1,dtype=bf16", merges), 0);
}

TEST(MfmaRules, AGridHasFewerThreadsThanTwoToThe32) {
    const auto large = [](const KernelConfig& c) {
        return !c.persistent && c.stream_k == StreamK::off && c.wave.m * c.wave.n * c.wave.k == 4;
    };
    EXPECT_GT(count_runnable("gemm:m=16,n=16,k=16,batch=16777215,dtype=bf16,layout=rcr", large), 0);
    EXPECT_EQ(count_runnable("gemm:m=16,n=16,k=16,batch=16777216,dtype=bf16,layout=rcr", large), 0);
}

TEST(MfmaRules, ARingOfManyCopiesHasTwoBuffers) {
    const auto few =
        parse_kernel_name("gemm_bf16_rcr_comp_async_cshuffle_intrawave_64x64x64_2x2x1_32x32x16_va8_vb8_vc8_dsb@gfx942");
    const auto many =
        parse_kernel_name("gemm_bf16_rcr_comp_async_cshuffle_intrawave_64x64x64_1x1x1_32x32x16_va8_vb8_vc8_dsb@gfx942");
    ASSERT_TRUE(few.ok() && many.ok());
    const auto has = [](const KernelConfig& c, const char* part) {
        const auto source = generate_source(c, arch(), std::nullopt);
        EXPECT_TRUE(source.ok());
        return source.ok() && source->text.find(part) != std::string::npos;
    };
    EXPECT_TRUE(has(*few, "ring_buffers = 3"));
    EXPECT_TRUE(has(*many, "ring_buffers = 2")) << "the counter of copies under way has six bits";
}

TEST(MfmaRules, WavesShareOutKWhereTheirSumsFindRoom) {
    const auto broken = [](const char* shape) {
        const auto config = parse_kernel_name(fmt::format("gemm_bf16_rcr_compv3_cshuffle_intrawave_{}@gfx942", shape));
        EXPECT_TRUE(config.ok()) << shape;
        Rejected why;
        return config.ok() && has_code(*config, arch(), &why) ? std::string() : std::string(why.rule);
    };
    EXPECT_EQ(broken("64x64x128_2x1x2_32x32x16_va8_vb8_vc8"), "");
    EXPECT_EQ(broken("128x128x32_2x1x2_32x32x16_va8_vb8_vc8"), "code_wave_k") << "64 KiB of sums in buffers of 16";
    EXPECT_EQ(broken("64x64x128_2x1x2_32x32x16_va8_vb8_vc8_sk-tree"), "code_wave_k") << "blocks share the tile";
    EXPECT_EQ(broken("32x32x32_2x1x2_16x16x32_va8_vb8_vc8"), "code_wave_k") << "half a step for each";
}

TEST(MfmaRules, ALineOfSingleElementsIsNoLongerThanTheBlock) {
    const auto config = parse_kernel_name(
        "grouped_conv_bwd_weight_bf16_ngchw_2d_compv3_cshuffle_intrawave_64x64x128_1x1x1_16x16x32@gfx942");
    ASSERT_TRUE(config.ok());
    Rejected why;
    EXPECT_FALSE(has_code(*config, arch(), &why));
    EXPECT_EQ(why.rule, "code_lines");
}

}  // namespace
}  // namespace tilewise
