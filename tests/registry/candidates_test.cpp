// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "family/may_run.hpp"
#include "problem/random_problem.hpp"
#include "registry/sample_kernels.hpp"

namespace tilewise {
namespace {

class RegistryCandidates : public EachArch {};

TEST_P(RegistryCandidates, EveryKernelIsAcceptedOrRejectedWithAReason) {
    Registry registry;
    registry.add(sample_kernels(GetParam()));
    registry.add(sample_kernels(GetParam() == "gfx942" ? "gfx90a" : "gfx942"));  // of another arch
    Random random(1);
    std::size_t accepted = 0;
    for (int i = 0; i < draws(60); ++i) {
        const Problem problem = i % 2 == 0 ? friendly_problem(random) : random_problem(random);
        const Candidates candidates = registry.candidates(problem, arch());
        std::vector<std::string> names;
        std::set<std::string> seen;
        for (const KernelPtr& kernel : candidates.accepted) {
            ASSERT_TRUE(seen.insert(kernel->name).second);
            ASSERT_EQ(kernel->config.arch, arch().name);
            ASSERT_TRUE(may_run(ProblemView(problem), kernel->config, arch()));
        }
        for (const auto& [kernel, why] : candidates.rejected) {
            ASSERT_TRUE(seen.insert(kernel->name).second) << "accepted and rejected: " << kernel->name;
            ASSERT_FALSE(why.rule.empty() || why.have.empty() || why.need.empty()) << kernel->name;
            ASSERT_EQ(why.rule == "fit_arch", kernel->config.arch != arch().name);
        }
        ASSERT_EQ(seen.size(), registry.size());
        // The quick answer is the first of the full one.
        const KernelPtr first = registry.first_fit(problem, arch());
        ASSERT_EQ(first, candidates.accepted.empty() ? nullptr : candidates.accepted.front()) << print_problem(problem);
        const Candidates counted = registry.candidates(problem, arch(), Reasons::counted);
        ASSERT_EQ(counted.accepted, candidates.accepted);
        ASSERT_TRUE(counted.rejected.empty());
        ASSERT_EQ(counted.rejected_count, candidates.rejected.size());
        ASSERT_EQ(candidates.rejected_count, candidates.rejected.size());
        accepted += candidates.accepted.size();
    }
    EXPECT_GT(accepted, 0u) << "no problem had a kernel, so this showed little";
}

INSTANTIATE_TEST_SUITE_P(Archs, RegistryCandidates, testing::ValuesIn(arch_names()), test_name);

TEST(RegistryCandidatesOrder, IsThatOfTheRegistry) {
    Registry registry;
    auto kernels = sample_kernels("gfx942", RuleSet::standard);
    for (std::size_t i = 0; i < kernels.size(); i += 3) kernels[i].priority = Priority::high;
    registry.add(std::move(kernels));
    const auto problem = parse_problem("gemm:m=512,n=512,k=512,dtype=bf16");
    const auto accepted = registry.candidates(*problem, arch_named("gfx942")).accepted;
    ASSERT_GT(accepted.size(), 2u);
    const auto all = registry.kernels();
    auto at = all->begin();
    for (const KernelPtr& kernel : accepted) {
        at = std::find(at, all->end(), kernel);
        ASSERT_NE(at, all->end()) << kernel->name;
    }
}

// Nothing stops a program from adding, or a file from holding, a config that no rule would pass. Either it is refused
// or it is rejected as a candidate; it must not bring the process down. Run apart, for a crash ends a process.
TEST(RegistryCandidatesDeathTest, ANonsenseKernelDoesNotCrash) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    for (const char* name :
         {"gemm_fp32_any_basic_v1_default_intrawave_0x0x0_0x0x0_0x0x0@gfx942",
          "gemm_fp32_any_basic_v1_default_intrawave_0x0x0_0x0x0_0x0x0_pad-none@gfx942",
          "gemm_fp32_rcr_basic_v1_default_intrawave_64x64x16_2x2x1_16x16x16_va0@gfx942",
          "grouped_conv_fwd_fp32_any_2d_basic_v1_default_intrawave_64x64x16_2x2x1_16x16x16_merge0@gfx942"}) {
        EXPECT_EXIT(
            {
                Registry registry;
                registry.add(make_kernel(*parse_kernel_name(name)));
                for (const char* text :
                     {"gemm:m=64,n=64,k=64,dtype=fp32", "conv_fwd:n=1,g=2,c=8,k=8,in=8x8,filter=3x3,dtype=fp32"}) {
                    const auto problem = parse_problem(text);
                    (void)registry.candidates(*problem, arch_named("gfx942"));
                    (void)registry.first_fit(*problem, arch_named("gfx942"));
                }
                std::_Exit(0);
            },
            testing::ExitedWithCode(0), "")
            << name;
    }
}

}  // namespace
}  // namespace tilewise
