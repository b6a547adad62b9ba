// SPDX-License-Identifier: MIT
// Problems that keep every rule of config/fit.hpp and still have no plan, or too little workspace.
#include "family/may_run.hpp"

#include <gtest/gtest.h>

#include <set>

#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "family/family.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

struct Refused {
    std::string_view family, problem, kernel;
};
constexpr Refused kWithoutPlan[] = {
    {"patch_conv", "conv_fwd:n=1,g=8,c=64,k=64,in=64x64,filter=61x61,dtype=bf16,layout=nhwgc",
     "grouped_conv_fwd_bf16_nhwgc_2d_comp_async_cshuffle_intrawave_256x16x16_4x2x1_16x8x16_va8_vc8_dsb_stages2_pers_"
     "gather-halo_merge8_bpu2@sm_90a"},
    {"patch_wgrad", "conv_bwd_weight:n=1,g=4,c=64,k=64,in=64x64,filter=61x61,dtype=bf16,layout=nhwgc",
     "grouped_conv_bwd_weight_bf16_nhwgc_2d_comp_async_cshuffle_intrawave_144x64x256_1x4x1_16x8x16_va8_vb8_dsb_stages2_"
     "swap_gather-halo_merge4_twostage_bpu2@sm_90a"},
};

TEST(MayRun, APlanThatDoesNotFitIsARefusalWithNumbers) {
    const ArchSpec& arch = arch_named("sm_90a");
    for (const auto& [family, text, kernel] : kWithoutPlan) {
        const Problem problem = parse_problem(text).value();
        const KernelConfig config = parse_kernel_name(kernel).value();
        EXPECT_EQ(find_family(config, arch)->name(), family);
        Rejected why;
        EXPECT_EQ(first_misfit(ProblemView(problem), config, arch, &why), nullptr) << why.rule << ": " << why.have;
        EXPECT_FALSE(may_run(ProblemView(problem), config, arch, &why));
        EXPECT_EQ(why.rule, "fit_plan");
        EXPECT_FALSE(why.have.empty() || why.need.empty()) << family;
        EXPECT_FALSE(may_run(ProblemView(problem), config, arch)) << "the same answer without the numbers";
        EXPECT_FALSE(launch_plan(problem, config, arch, 1));
    }
}

TEST(MayRun, WorkspaceStaysWithinTheLimit) {
    const ArchSpec& arch = arch_named("sm_90a");
    Problem problem = parse_problem("gemm:m=256,n=256,k=256,dtype=bf16,layout=rcr").value();
    const KernelConfig config =
        parse_kernel_name(
            "gemm_bf16_rcr_compv6_cshuffle_intrawave_64x64x64_1x1x1_64x64x16_va8_vb8_vc8_stages4_splitk2_"
            "pw1@sm_90a")
            .value();
    const std::int64_t bytes = launch_plan(problem, config, arch, 1)->workspace_bytes;
    EXPECT_EQ(bytes, 2 * 256 * 256 * 4);
    problem.workspace_bytes = bytes;
    EXPECT_TRUE(may_run(ProblemView(problem), config, arch));
    problem.workspace_bytes = bytes - 1;
    Rejected why;
    EXPECT_FALSE(may_run(ProblemView(problem), config, arch, &why));
    EXPECT_EQ(why.rule, "fit_workspace");
    EXPECT_EQ(why.need, "at most 524287");
}

TEST(MayRun, ASearchedPlanIsThatOfTheLaunch) {
    const ArchSpec& arch = arch_named("sm_90a");
    for (const auto& [family, _, kernel] : kWithoutPlan) {
        const KernelConfig config = parse_kernel_name(kernel).value();
        Problem problem = parse_problem("conv_fwd:n=8,g=16,c=128,k=128,in=28x28,filter=3x3,pad=1,dtype=bf16").value();
        problem.op = config.op;
        std::optional<LaunchPlan> searched;
        Rejected why;
        ASSERT_TRUE(may_run(ProblemView(problem), config, arch, &why, &searched)) << why.rule << ": " << why.have;
        ASSERT_TRUE(searched) << family;
        EXPECT_EQ(searched, launch_plan(problem, config, arch, 1));
    }
}

TEST(MayRun, RulesHaveNamesOfTheirOwn) {
    std::set<std::string_view> names;
    for (const NamedRule& rule : run_rules()) {
        EXPECT_TRUE(names.insert(rule.name).second) << rule.name << " twice";
        EXPECT_FALSE(rule.reason.empty()) << rule.name;
    }
    EXPECT_EQ(names.size(), fit_rules().size() + 2);
}

}  // namespace
}  // namespace tilewise
