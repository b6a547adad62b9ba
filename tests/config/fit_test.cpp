// SPDX-License-Identifier: MIT
// The rules between a problem and a kernel: one broken pair for each, and what the numbers are.
#include "config/fit.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "config/archs.hpp"
#include "config/rule_set.hpp"
#include "problem/problem_text.hpp"
#include "problem/random_problem.hpp"

namespace tilewise {
namespace {

constexpr std::string_view kGemmProblem = "gemm:m=256,n=256,k=256,dtype=bf16,layout=rcr";
constexpr std::string_view kGemmKernel =
    "gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128x64_2x2x1_32x32x16_va8_vb8_vc8@gfx942";
constexpr std::string_view kConvProblem =
    "conv_fwd:n=4,g=4,c=64,k=64,in=14x14,filter=3x3,pad=1,dtype=bf16,layout=nhwgc";
constexpr std::string_view kConvKernel =
    "grouped_conv_fwd_bf16_nhwgc_2d_compv3_cshuffle_intrawave_128x128x32_2x2x1_32x32x16_va8_vb8_vc8@gfx942";

struct Pair {
    Problem problem;
    KernelConfig config;
    ArchSpec arch = arch_named("gfx942");

    const FitRule* misfit(Rejected* out = nullptr) const {
        return first_misfit(ProblemView(problem), config, arch, out);
    }
};

Pair gemm_pair() { return {*parse_problem(kGemmProblem), *parse_kernel_name(kGemmKernel)}; }
Pair conv_pair() { return {*parse_problem(kConvProblem), *parse_kernel_name(kConvKernel)}; }

Pair cuda_pair(std::string_view problem, std::string_view kernel) {
    return {*parse_problem(problem), *parse_kernel_name(kernel), arch_named("sm_90a")};
}
// A depthwise problem that does everything to its sums, and a kernel.
Pair with_epilogue(std::string_view filter, std::string_view kernel, std::string_view dilation) {
    return cuda_pair(
        fmt::format("conv_fwd:n=1,g=16,c=16,k=16,in=9x9,filter={},dtype=bf16,layout=nhwgc,epilogue=bias+add+"
                    "gelu,scale=tensor,beta=1",
                    filter),
        fmt::format("grouped_conv_fwd_bf16_nhwgc_2d_{}_va8_vc8_spec-depthwise_filter{}_stride1x1{}@sm_90a", kernel,
                    filter, dilation));
}

struct BrokenPair {
    std::string_view rule;
    bool conv;
    std::function<void(Pair&)> change;
};
constexpr bool kIsGemm = false, kIsConv = true;

const std::vector<BrokenPair>& broken_pairs() {
    static const std::vector<BrokenPair> cases = {
        {"fit_op", kIsConv, [](Pair& p) { p.config.op = Op::conv_bwd_data; }},
        {"fit_empty", kIsGemm, [](Pair& p) { p.problem.gemm.k = 0; }},
        {"fit_empty", kIsConv, [](Pair& p) { p.problem.conv.n = 0; }},
        {"fit_dtype", kIsGemm, [](Pair& p) { p.problem.dtype_out = DType::fp32; }},
        {"fit_dtype", kIsGemm, [](Pair& p) { p.config.dtype_b = DType::fp16; }},
        {"fit_dimensions", kIsConv, [](Pair& p) { p.config.ndim = 3; }},
        {"fit_layout", kIsGemm, [](Pair& p) { p.problem.layout = Layout::rrr; }},
        {"fit_math", kIsGemm, [](Pair& p) { p.config.math = Math::fast; }},
        {"fit_packed", kIsGemm, [](Pair& p) { p.problem.packed_b = true; }},
        {"fit_deterministic", kIsGemm,
         [](Pair& p) {
             p.problem.deterministic = true;
             p.config.deterministic = false;
         }},
        {"fit_specialization", kIsConv, [](Pair& p) { p.config.specialization = Specialization::filter_1x1; }},
        {"fit_specialization", kIsConv, [](Pair& p) { p.config.specialization = Specialization::depthwise; }},
        {"fit_compile_time", kIsConv, [](Pair& p) { p.config.ct_filter = filled(2, 5); }},
        {"fit_compile_time", kIsConv, [](Pair& p) { p.config.ct_stride = filled(2, 2); }},
        {"fit_compile_time", kIsConv, [](Pair& p) { p.config.ct_dilation = filled(2, 2); }},
        {"fit_groups", kIsConv, [](Pair& p) { p.config.num_groups_to_merge = 8; }},
        {"fit_padding", kIsGemm,
         [](Pair& p) {
             p.config.pad.m = false;
             p.problem.gemm.m = 257;
         }},
        {"fit_vector", kIsGemm, [](Pair& p) { p.problem.gemm.k = 252; }},
        {"fit_vector", kIsGemm, [](Pair& p) { p.problem.gemm.n = 254; }},
        {"fit_vector", kIsGemm, [](Pair& p) { p.problem.align_bytes = 8; }},
        {"fit_vector", kIsGemm, [](Pair& p) { p.problem.gemm.leading[0] = 260; }},
        {"fit_vector", kIsGemm,
         [](Pair& p) {
             p.problem.gemm.batch = 2;
             p.problem.gemm.batch_stride[1] = 65540;
         }},
        {"fit_vector", kIsConv, [](Pair& p) { p.problem.conv.c = 4 * 12; }},
        {"fit_index_range", kIsConv, [](Pair& p) { p.problem.conv.n = std::int64_t{1} << 20; }},
        {"fit_index_range", kIsConv, [](Pair& p) { p.problem.conv.stride[0] = (std::int64_t{1} << 32) + 1; }},
        {"fit_index_range", kIsConv, [](Pair& p) { p.problem.conv.dilation[1] = (std::int64_t{1} << 32) + 1; }},
        {"fit_index_range", kIsConv, [](Pair& p) { p.problem.conv.pad_after[0] = std::int64_t{1} << 30; }},
        {"fit_gpu_range", kIsGemm, [](Pair& p) { p.problem.gemm.batch = std::int64_t{1} << 32; }},
        {"fit_gpu_range", kIsGemm,
         [](Pair& p) {
             p.problem = *parse_problem("gemm:m=1,n=1,k=274877906944,dtype=bf16,layout=rcr");
             p.config.vector_c = 1;
         }},
        {"fit_gpu_range", kIsConv,
         [](Pair& p) {
             p.problem.conv.n = std::int64_t{1} << 31;
             p.config.split_image = true;
         }},
        {"fit_split_k", kIsGemm, [](Pair& p) { p.config.split_k = 5; }},
        {"fit_multi_d", kIsGemm,
         [](Pair& p) {
             p.problem.epilogue = {EpilogueOp::add};
             p.arch.limits[static_cast<std::size_t>(Operator::multi_d)].min = {256, 16, 8};
         }},
        {"fit_depthwise", kIsConv,
         [](Pair& p) {
             p = cuda_pair("conv_fwd:n=1,g=8,c=8,k=16,in=9x9,filter=3x3,dtype=bf16,layout=nhwgc",
                           "grouped_conv_fwd_bf16_nhwgc_2d_basic_v1_default_intrawave_4x32x1_4x1x1_1x32x1_va4_vc4_spec-"
                           "depthwise@sm_90a");
         }},
        {"fit_im2col", kIsConv,
         [](Pair& p) {
             p = cuda_pair(
                 "conv_fwd:n=1,g=2,c=64,k=64,in=19x19,filter=3x3,stride=9x9,dtype=bf16,layout=nhwgc",
                 "grouped_conv_fwd_bf16_nhwgc_2d_compv6_cshuffle_intrawave_128x256x64_2x1x1_64x256x16_va8_vb8_"
                 "vc8_stages4_pers_gather-tensor_pw1@sm_90a");
         }},
        {"fit_columns", kIsConv,
         [](Pair& p) {
             p = cuda_pair(
                 "conv_bwd_data:n=1,g=2,c=2,k=64,in=9x9,filter=3x3,dtype=bf16,layout=nhwgc",
                 "grouped_conv_bwd_data_bf16_nhwgc_2d_comp_async_default_intrawave_64x64x64_2x2x1_16x8x16_va8_"
                 "dsb_stages4_gather-columns@sm_90a");
         }},
        {"fit_vectors", kIsGemm,
         [](Pair& p) {
             p = cuda_pair(
                 "gemm:m=5,n=64,k=256,dtype=bf16,layout=rcr",
                 "gemm_bf16_rcr_compv3_default_intrawave_16x4x512_1x1x8_16x4x1_va8_vb8_pers_swap_bpu2@sm_90a");
         }},
    };
    return cases;
}

TEST(Fit, TheExamplesFit) {
    for (const Pair& pair : {gemm_pair(), conv_pair()}) {
        Rejected why;
        EXPECT_EQ(pair.misfit(&why), nullptr) << why.rule << ": " << why.have << "; " << why.need;
    }
}

TEST(Fit, EachRuleIsBrokenByItsExample) {
    for (const BrokenPair& broken : broken_pairs()) {
        Pair pair = broken.conv ? conv_pair() : gemm_pair();
        broken.change(pair);
        Rejected why;
        const FitRule* rule = pair.misfit(&why);
        ASSERT_NE(rule, nullptr) << broken.rule;
        EXPECT_EQ(rule->name, broken.rule) << why.have << "; " << why.need;
        EXPECT_EQ(why.rule, broken.rule);
        EXPECT_FALSE(why.have.empty()) << broken.rule;
        EXPECT_FALSE(why.need.empty()) << broken.rule;
        EXPECT_EQ(pair.misfit(), rule) << "the same answer without the numbers";
    }
}

TEST(Fit, EachRuleHasAnExample) {
    std::set<std::string_view> covered, names;
    for (const BrokenPair& broken : broken_pairs()) covered.insert(broken.rule);
    for (const FitRule& rule : fit_rules()) {
        EXPECT_TRUE(covered.contains(rule.name)) << "add a broken pair for rule " << rule.name;
        EXPECT_TRUE(names.insert(rule.name).second) << rule.name << " twice";
        EXPECT_FALSE(rule.reason.empty()) << rule.name;
    }
}

TEST(Fit, BoundariesFit) {
    const std::pair<bool, std::function<void(Pair&)>> cases[] = {
        {kIsGemm, [](Pair& p) { p.config.split_k = 4; }},  // of 256 / 64 steps
        {kIsGemm,
         [](Pair& p) {
             p.problem.gemm.leading = {264, 256, 272};
         }},
        {kIsGemm, [](Pair& p) { p.problem.gemm.m = 1; }},  // not along any vector
        {kIsGemm, [](Pair& p) { p.problem.align_bytes = 4096; }},
        {kIsGemm,
         [](Pair& p) {
             p.problem.align_bytes = 2;
             p.problem.gemm.k = 37;
             p.config.vector_a = p.config.vector_b = p.config.vector_c = 1;
         }},
        {kIsGemm,
         [](Pair& p) {
             p.config.pad = {false, false, false};
         }},
        {kIsGemm, [](Pair& p) { p.problem.epilogue = {EpilogueOp::add}; }},
        {kIsConv, [](Pair& p) { p.config.num_groups_to_merge = 4; }},
        {kIsConv, [](Pair& p) { p.config.specialization = Specialization::filter_3x3; }},
        {kIsConv, [](Pair& p) { p.config.ct_filter = filled(2, 3); }},
        {kIsConv,
         [](Pair& p) {
             p.problem.conv.n = std::int64_t{1} << 20;
             p.config.split_image = true;
         }},
        {kIsConv,
         [](Pair& p) {
             p.problem.conv.stride[0] = p.problem.conv.dilation[1] = p.problem.conv.pad_before[1] =
                 p.problem.conv.pad_after[1] = std::int64_t{1} << 32;
             p.config.split_image = true;
         }},
        {kIsConv, [](Pair& p) { p.problem.conv.stride[0] = p.problem.conv.pad_after[0] = (1 << 29) - 1; }},
        {kIsConv, [](Pair& p) { p.config.layout = Layout::any; }},
        // Depthwise kernels of every kind apply epilogues.
        {kIsConv,
         [](Pair& p) {
             p = with_epilogue("7x7", "basic_v1_default_intrawave_64x16x16_4x2x1_16x8x16", "_dilation1x1");
         }},
        {kIsConv,
         [](Pair& p) {
             p = with_epilogue("3x3", "basic_v1_default_intrawave_64x32x16_4x2x1_16x8x16", "_dilation1x1");
         }},
        {kIsConv,
         [](Pair& p) { p = with_epilogue("3x3", "basic_async_v1_default_intrawave_16x64x1_8x1x1_2x64x1", ""); }},
    };
    for (const auto& [conv, change] : cases) {
        Pair pair = conv ? conv_pair() : gemm_pair();
        change(pair);
        Rejected why;
        EXPECT_EQ(pair.misfit(&why), nullptr) << why.rule << ": " << why.have << "; " << why.need;
    }
}

// A stricter kernel may serve a looser problem, never the other way round.
TEST(Fit, MathClasses) {
    const bool serves[4][4] = {
        // asked: strict, fast, tf32, tf32x3
        {true, true, true, true},     // strict
        {false, true, false, false},  // fast
        {false, false, true, false},  // tf32
        {false, false, true, true},   // tf32x3
    };
    for (int have = 0; have < 4; ++have) {
        for (int asked = 0; asked < 4; ++asked) {
            Pair pair = gemm_pair();
            pair.config.math = static_cast<Math>(have);
            pair.problem.math = static_cast<Math>(asked);
            EXPECT_EQ(pair.misfit() == nullptr, serves[have][asked]) << have << " for " << asked;
        }
    }
}

TEST(Fit, SpecializationsSayWhatTheyNeed) {
    const auto fits = [](Specialization specialization, std::string_view shape) {
        Pair pair = conv_pair();
        pair.problem = *parse_problem("conv_fwd:n=4,in=14x14,dtype=bf16,layout=nhwgc," + std::string(shape));
        pair.config.specialization = specialization;
        pair.config.vector_a = pair.config.vector_b = pair.config.vector_c = 1;
        return pair.misfit() == nullptr;
    };
    const std::string_view plain = "g=1,c=8,k=8,";
    const auto shape = [&](std::string_view more) { return std::string(plain) + std::string(more); };
    EXPECT_TRUE(fits(Specialization::filter_1x1, shape("filter=1")));
    EXPECT_TRUE(fits(Specialization::filter_1x1, shape("filter=1,stride=2")));
    EXPECT_FALSE(fits(Specialization::filter_1x1, shape("filter=1,pad=1")));
    EXPECT_FALSE(fits(Specialization::filter_1x1, shape("filter=1,pad=0:1")));
    EXPECT_FALSE(fits(Specialization::filter_1x1, shape("filter=1x3")));
    EXPECT_TRUE(fits(Specialization::filter_1x1_stride1, shape("filter=1")));
    EXPECT_FALSE(fits(Specialization::filter_1x1_stride1, shape("filter=1,stride=1x2")));
    EXPECT_TRUE(fits(Specialization::filter_3x3, shape("filter=3,stride=2,pad=1")));
    EXPECT_FALSE(fits(Specialization::filter_3x3, shape("filter=3x1")));
    EXPECT_TRUE(fits(Specialization::depthwise, "g=8,c=8,k=8,filter=5"));
    EXPECT_FALSE(fits(Specialization::depthwise, "g=4,c=8,k=8,filter=5"));
}

// Rows of a channels-first tensor run along the image, whose length merging groups does not change.
TEST(Fit, MergedGroupsDoNotLengthenRowsOfAnImage) {
    Pair pair = conv_pair();
    pair.problem = *parse_problem("conv_fwd:n=4,g=8,c=64,k=64,in=7x7,filter=1,dtype=bf16,layout=ngchw");
    pair.config.layout = Layout::ngchw;
    pair.config.num_groups_to_merge = 8;
    pair.config.vector_b = pair.config.vector_c = 1;
    ASSERT_EQ(pair.config.vector_a, 8);
    const FitRule* rule = pair.misfit();
    ASSERT_NE(rule, nullptr) << "8 elements at a time along rows of 7";
    EXPECT_EQ(rule->name, "fit_vector");
}

// Weights are GKYXC: the channels of one group end before the next filter tap begins, merged groups or not.
TEST(Fit, MergedGroupsDoNotLengthenRowsOfTheWeights) {
    Pair pair = conv_pair();
    pair.problem = *parse_problem("conv_fwd:n=4,g=8,c=32,k=64,in=7x7,filter=3,dtype=bf16,layout=nhwgc");
    pair.config.num_groups_to_merge = 8;
    pair.config.vector_a = pair.config.vector_c = 1;
    ASSERT_EQ(pair.config.vector_b, 8);
    const FitRule* rule = pair.misfit();
    ASSERT_NE(rule, nullptr) << "8 elements at a time along rows of 4";
    EXPECT_EQ(rule->name, "fit_vector");
}

class FitRandom : public EachArch {};

// Random problems against the kernels of the default set: the two forms of the answer agree, and no answer is empty.
TEST_P(FitRandom, WithAndWithoutNumbersAgree) {
    Random random(1);
    std::vector<KernelConfig> configs;
    for (const Op op : kAllOps) {
        const auto some = expand(arch(), op, RuleSet::tiny);
        configs.insert(configs.end(), some->begin(), some->end());
    }
    for (int i = 0; i < draws(300); ++i) {
        const Problem problem = i % 2 == 0 ? friendly_problem(random) : random_problem(random);
        const ProblemView view(problem);
        for (const KernelConfig& config : configs) {
            Rejected why;
            const FitRule* rule = first_misfit(view, config, arch(), &why);
            ASSERT_EQ(first_misfit(view, config, arch()), rule);
            if (!rule) continue;
            ASSERT_EQ(why.rule, rule->name);
            ASSERT_FALSE(why.have.empty()) << rule->name;
            ASSERT_FALSE(why.need.empty()) << rule->name;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Archs, FitRandom, testing::ValuesIn(arch_names()), test_name);

}  // namespace
}  // namespace tilewise
