// SPDX-License-Identifier: MIT
// Every convolution of the rule set `full-tests` that is for the host's arch is built, run on a random problem that it may
// run, and validated. None may be left out. Thousands of kernels: only with TILEWISE_TEST_CONV_FULL_TESTS=1, which `make
// test-full` says; n takes every n-th.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "config/rule_set.hpp"
#include "family/family.hpp"
#include "run/conv_problems.hpp"
#include "run/property_testing.hpp"

namespace tilewise {
namespace {

using property_testing::number;

constexpr int kProblemsOfAKernel = 2;
constexpr std::size_t kBuiltAtOnce = 64;

class ConvFullTests : public property_testing::PropertyTest, public testing::WithParamInterface<Op> {
protected:
    void run_all(Random& random, const std::vector<Kernel>& kernels) {
        for (const Kernel& kernel : kernels) {
            int found = 0;
            for (int i = 0; i < kProblemsOfAKernel; ++i) {
                const auto problem = conv_problem_for(random, kernel.config, *arch_, kSmallConv, 3000);
                if (!problem) continue;
                run_and_check(random, *problem, kernel);
                ++found;
            }
            if (found > 0) continue;
            ++skipped_;
            ADD_FAILURE() << "no problem for " << kernel.name;
        }
    }

    std::size_t skipped_ = 0;
};
INSTANTIATE_TEST_SUITE_P(All, ConvFullTests, testing::Values(Op::conv_fwd, Op::conv_bwd_data, Op::conv_bwd_weight),
                         [](const auto& op) { return std::string(name_of(op.param)); });

TEST_P(ConvFullTests, EachBuildsRunsAndValidates) {
    const int step = number("TILEWISE_TEST_CONV_FULL_TESTS", 0);
    if (step <= 0) GTEST_SKIP() << "long; make test-full runs it";
    const auto configs = expand(*arch_, GetParam(), RuleSet::full_tests);
    ASSERT_TRUE(configs.ok() && !configs->empty());
    Random random(77);
    std::vector<Kernel> kernels;
    for (std::size_t i = 0; i < configs->size(); i += static_cast<std::size_t>(step)) {
        const KernelConfig& config = (*configs)[i];
        const bool can_run = has_code(config, device_->arch()) && !device_->refuses(config);
        EXPECT_TRUE(can_run) << kernel_name(config);
        if (!can_run) ++skipped_;
        if (can_run) kernels.push_back(make_kernel(config));
    }
    for (std::size_t first = 0; first < kernels.size(); first += kBuiltAtOnce) {
        const std::size_t last = std::min(kernels.size(), first + kBuiltAtOnce);
        const std::vector<Kernel> some(kernels.begin() + static_cast<std::ptrdiff_t>(first),
                                       kernels.begin() + static_cast<std::ptrdiff_t>(last));
        build_ahead(some);
        run_all(random, some);
    }
    std::printf("%zu of %zu configs, %zu skipped\n", kernels.size(), configs->size(), skipped_);
    EXPECT_EQ(skipped_, 0u);
}

}  // namespace
}  // namespace tilewise
