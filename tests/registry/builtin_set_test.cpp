// SPDX-License-Identifier: MIT
// The rule set `builtin` keeps its promise on CPUs: selection, which knows the kernels of `default`, finds a built-in one for
// every problem with the usual output type, on every CPU of the arch.
#include <gtest/gtest.h>

#include "config/archs.hpp"
#include "family/family.hpp"
#include "problem/random_problem.hpp"
#include "registry/rule_set_registry.hpp"

namespace tilewise {
namespace {

class BuiltinSet : public EachArch {
protected:
    std::vector<Kernel> kernels(RuleSet set) const {
        KernelQuery query;
        query.arch = &arch();
        query.set = set;
        query.op = Op::gemm;
        return *list_kernels(query);
    }
    // The kernel uses what its arch has, and no more.
    bool runs_on_every_cpu(const Kernel& kernel) const {
        return kernel_features(kernel.config, arch()) == arch().cpu_features;
    }
};

TEST_P(BuiltinSet, IsSmallAndWithinDefault) {
    Registry standard;
    standard.add(kernels(RuleSet::standard));
    const auto builtin = kernels(RuleSet::builtin);
    EXPECT_GE(builtin.size(), 50u);
    EXPECT_LE(builtin.size(), 90u);
    for (const Kernel& kernel : builtin) {
        EXPECT_TRUE(kernel.available) << kernel.name;
        EXPECT_NE(standard.find(kernel.name), nullptr) << kernel.name;
    }
}

TEST_P(BuiltinSet, HasAKernelForEveryProblemThatDefaultHasOneFor) {
    Registry standard, builtin, standard_anywhere, builtin_anywhere;
    standard.add(kernels(RuleSet::standard));
    builtin.add(kernels(RuleSet::builtin));
    for (Kernel& kernel : kernels(RuleSet::standard)) {
        if (runs_on_every_cpu(kernel)) standard_anywhere.add(kernel);
    }
    for (Kernel& kernel : kernels(RuleSet::builtin)) {
        if (runs_on_every_cpu(kernel)) builtin_anywhere.add(kernel);
    }
    Random random(7);
    const int kProblems = draws(2000);
    int supported = 0;
    for (int i = 0; i < kProblems; ++i) {
        Problem problem;
        randomize_types(random, problem);
        problem.dtype_out = default_output(problem.dtype_a);
        randomize_gemm(random, problem, i % 2 == 0 ? 60 : 5000);
        randomize_options(random, problem);
        const bool expected = standard.first_fit(problem, arch()) != nullptr;
        supported += expected ? 1 : 0;
        ASSERT_EQ(builtin.first_fit(problem, arch()) != nullptr, expected) << print_problem(problem);
        ASSERT_EQ(builtin_anywhere.first_fit(problem, arch()) != nullptr,
                  standard_anywhere.first_fit(problem, arch()) != nullptr)
            << print_problem(problem);
    }
    EXPECT_GT(supported, kProblems * 3 / 4) << "so many problems without a kernel show little";
}

INSTANTIATE_TEST_SUITE_P(Cpus, BuiltinSet, testing::Values("cpu-amx", "cpu-avx512", "cpu-avx2", "cpu-generic"),
                         test_name);

TEST(BuiltinSetElsewhere, IsTinyWhereABookListsNone) {
    const ArchSpec& arch = arch_named("sm_90a");
    EXPECT_EQ(*expand(arch, Op::gemm, RuleSet::builtin), *expand(arch, Op::gemm, RuleSet::tiny));
}

}  // namespace
}  // namespace tilewise
