// SPDX-License-Identifier: MIT
// The hot path allocates nothing: is_valid, may_run without numbers, and first_fit; nor does a choice for kernels that it refuses.
#include <gtest/gtest.h>

#include <thread>

#include "base/count_allocations.hpp"
#include "config/random_config.hpp"
#include "config/rules.hpp"
#include "family/may_run.hpp"
#include "problem/random_problem.hpp"
#include "registry/sample_kernels.hpp"
#include "select/choice_table.hpp"

namespace tilewise {
namespace {

TEST(NoAllocation, TheCounterCounts) {
    EXPECT_EQ(allocations_in([] {}), 0u);
    EXPECT_GE(allocations_in([] { EXPECT_EQ(std::string(100, 'x').size(), 100u); }), 1u);
    EXPECT_GE(allocations_in([] { delete new int(1); }) + allocations_in([] { std::vector<int>(10); }), 1u);
}

class NoAllocationOn : public EachArch {};

// In a thread of its own, so that what a thread sets up at its first check is as small as can be.
TEST_P(NoAllocationOn, InIsValid) {
    const ArchSpec& spec = arch();
    int valid = 0;
    std::thread([&] {
        Random random(1);
        while (!is_valid(nearly_valid_config(random, spec), spec)) {
        }  // passes every rule once: whatever a thread sets up is set up
        for (int i = 0; i < draws(2000); ++i) {
            const KernelConfig config = nearly_valid_config(random, spec);
            bool yes = false;
            ASSERT_EQ(allocations_in([&] { yes = is_valid(config, spec); }), 0u) << kernel_name(config);
            valid += yes ? 1 : 0;
        }
    }).join();
    EXPECT_GT(valid, 0);
}

TEST_P(NoAllocationOn, InFirstMisfitAndFirstFit) {
    const ArchSpec& spec = arch();
    Random random(2);
    Registry registry;
    registry.add(sample_kernels(GetParam(), RuleSet::standard));
    const auto kernels = registry.kernels();
    int fits = 0;
    for (int i = 0; i < draws(50); ++i) {
        const Problem problem = i % 2 == 0 ? friendly_problem(random) : random_problem(random);
        for (std::size_t k = 0; k < kernels->size(); k += 7) {
            const KernelConfig& config = (*kernels)[k]->config;
            ASSERT_EQ(allocations_in([&] { (void)may_run(ProblemView(problem), config, spec); }), 0u)
                << print_problem(problem) << "\n"
                << kernel_name(config);
        }
        KernelPtr fit;
        ASSERT_EQ(allocations_in([&] { fit = registry.first_fit(problem, spec); }), 0u) << print_problem(problem);
        fits += fit ? 1 : 0;
    }
    EXPECT_GT(fits, 0);
}

// A table takes one piece of memory for a choice, however many kernels it refuses.
TEST_P(NoAllocationOn, ForKernelsThatATableRefuses) {
    const ArchSpec& spec = arch();
    Registry registry;
    registry.add(sample_kernels(GetParam(), RuleSet::tiny));
    const ChoiceTable table(*registry.kernels(), spec);
    Random random(3);
    int refused = 0;
    for (int i = 0; i < draws(100); ++i) {
        const Problem problem = random_problem(random);
        bool is_refused = false;
        const std::size_t count = allocations_in([&] { is_refused = table.first(problem, 1, 1).empty(); });
        if (!is_refused) continue;
        EXPECT_LE(count, 1u) << print_problem(problem);
        ++refused;
    }
    EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(Archs, NoAllocationOn, testing::ValuesIn(arch_names()), test_name);

}  // namespace
}  // namespace tilewise
