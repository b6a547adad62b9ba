// SPDX-License-Identifier: MIT
// A choice that looks for the first kernels alone finds what the whole ranking begins with.
#include "select/choice_table.hpp"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "family/may_run.hpp"
#include "problem/random_problem.hpp"
#include "registry/sample_kernels.hpp"
#include "select/test_problems.hpp"

namespace tilewise {
namespace {

constexpr int kChoiceThreads = 4;

class ChoiceTableOn : public EachArch {
protected:
    // Kernels of the default set for the problem's operation and types, and the table of them.
    struct Listed {
        Registry registry;
        std::unique_ptr<ChoiceTable> table;
    };
    const Listed& listed_for(const Problem& p) {
        Listed& listed = listed_[{p.op, p.dtype_a, p.dtype_b, p.dtype_out}];
        if (listed.table) return listed;
        if (auto kernels = list_kernels(query_for(p, arch(), RuleSet::standard))) {
            std::erase_if(*kernels, [](const Kernel& kernel) { return !kernel.available; });
            listed.registry.add(std::move(*kernels));
        }
        listed.table = std::make_unique<ChoiceTable>(*listed.registry.kernels(), arch());
        return listed;
    }

    // The whole ranking of those that need no padding.
    std::vector<Candidate> ranking_of(const Problem& p) {
        Selection all = select_kernel(p, listed_for(p).registry, arch(), kChoiceThreads, Reasons::counted);
        std::erase_if(all.candidates, [](const Candidate& candidate) { return candidate.padding.has_value(); });
        return std::move(all.candidates);
    }

    void expect_same_beginning(const Problem& p, std::size_t most) {
        const std::vector<Candidate> all = ranking_of(p), first = listed_for(p).table->first(p, kChoiceThreads, most);
        ASSERT_EQ(first.size(), std::min(most, all.size())) << print_problem(p);
        for (std::size_t i = 0; i < first.size(); ++i) {
            ASSERT_EQ(first[i].kernel->name, all[i].kernel->name) << print_problem(p) << " " << i;
            ASSERT_EQ(first[i].predicted_us, all[i].predicted_us) << print_problem(p) << " " << i;
        }
        if (first.empty()) return;
        // Others are planned for their threads when they are chosen.
        if (find_family(first[0].kernel->config, arch())->searches) {
            ASSERT_TRUE(first[0].launch && all[0].launch) << print_problem(p);
            ASSERT_EQ(*first[0].launch, *all[0].launch) << print_problem(p);
        }
        ++chosen_;
    }

    std::map<std::tuple<Op, DType, DType, DType>, Listed> listed_;
    int chosen_ = 0;
};

TEST_P(ChoiceTableOn, FindsTheFirstOfTheRanking) {
    if (!has_families(arch().backend)) return;  // nothing predicts there, and nothing is looked up in a table
    Random random(31);
    for (int i = 0; i < draws(400); ++i) {
        const Problem p = i % 8 == 0   ? random_problem(random)
                          : i % 8 == 1 ? friendly_problem(random)
                                       : random_layer(random);
        if (!has_families(arch().backend, p.op)) continue;
        expect_same_beginning(p, i % 3 == 0 ? 5 : 1);
    }
    EXPECT_GT(chosen_, 0);
}

// What a learned model looks at, and what it sees of it.
TEST_P(ChoiceTableOn, FindsWhatAModelLooksAt) {
    if (!has_families(arch().backend)) return;
    Random random(33);
    int others = 0;
    for (int i = 0; i < draws(120); ++i) {
        const Problem p = i % 4 == 0 ? random_problem(random) : random_layer(random);
        if (!has_families(arch().backend, p.op)) continue;
        const std::vector<Candidate> all = ranking_of(p), found = listed_for(p).table->to_learn(p, kChoiceThreads);
        const std::vector<std::size_t> places = places_to_learn(all);
        ASSERT_EQ(found.size(), places.size()) << print_problem(p);
        const WorkProblem work(p, arch(), kChoiceThreads);
        for (std::size_t j = 0; j < places.size(); ++j) {
            const Candidate& wanted = all[places[j]];
            ASSERT_EQ(found[j].kernel->name, wanted.kernel->name) << print_problem(p) << " " << j;
            ASSERT_EQ(found[j].predicted_us, wanted.predicted_us) << print_problem(p) << " " << j;
            if (i % 8 == 0) {
                ASSERT_EQ(found[j].parts, work_parts_of(work, wanted.kernel->config)) << wanted.kernel->name;
            }
        }
        if (places.size() > kFirstLearned) ++others;
    }
    const bool few = draws(120) < 120;  // a sanitizer draws fewer problems
    EXPECT_TRUE(others > 0 || few || !arch().is_gpu() || arch().backend == Backend::hip);
}

// Whether or not a kernel may run the problem in the end.
TEST_P(ChoiceTableOn, NoPredictionIsBelowItsBound) {
    Random random(32);
    int bounds = 0;
    for (int i = 0; i < draws(150); ++i) {
        const Problem p = i % 4 == 0 ? random_problem(random) : random_layer(random);
        const WorkProblem work(p, arch(), kChoiceThreads);
        const auto kernels = listed_for(p).registry.kernels();
        for (const KernelPtr& kernel : *kernels) {
            const KernelConfig& config = kernel->config;
            const Family* family = find_family(config, arch());
            if (!family || !family->work.least || breaks_shared_rule(work.view, config, arch())) continue;
            const WorkColumns columns = family->work.columns ? family->work.columns(config, arch()) : WorkColumns();
            const double least = family->work.least(work, config, columns);
            std::optional<LaunchPlan> plan;
            if (!may_run(work.view, config, arch(), nullptr, &plan)) continue;
            const double us = family->work.us(work, config, plan ? &*plan : nullptr);
            ASSERT_LE(least, us * (1 + 1e-12)) << print_problem(p) << "\n" << kernel->name;
            ASSERT_GT(least, 0) << print_problem(p) << "\n" << kernel->name;
            ++bounds;
        }
    }
    EXPECT_TRUE(bounds > 0 || !has_families(arch().backend));
}

TEST_P(ChoiceTableOn, PrioritiesComeFirst) {
    const Problem p = *parse_problem("gemm:m=512,n=512,k=512,dtype=fp32,layout=rcr");
    if (!has_families(arch().backend, p.op)) return;
    const std::vector<Candidate> all = ranking_of(p);
    if (all.size() < 3) return;
    Registry registry;
    for (std::size_t i = 0; i < all.size(); ++i) {
        Kernel kernel = *all[i].kernel;
        kernel.priority = i == 0 ? Priority::low : i + 1 == all.size() ? Priority::high : Priority::normal;
        registry.add(std::move(kernel));
    }
    const auto first = ChoiceTable(*registry.kernels(), arch()).first(p, kChoiceThreads, all.size());
    ASSERT_EQ(first.size(), all.size());
    EXPECT_EQ(first.front().kernel->name, all.back().kernel->name);
    EXPECT_EQ(first[1].kernel->name, all[1].kernel->name);
    EXPECT_EQ(first.back().kernel->name, all.front().kernel->name);
}

INSTANTIATE_TEST_SUITE_P(Archs, ChoiceTableOn, testing::ValuesIn(arch_names()), test_name);

TEST(ChoiceTable, SaysWhatItDid) {
    const Problem p = *parse_problem("gemm:m=512,n=512,k=512,dtype=bf16,layout=rcr");
    Registry registry;
    registry.add(*list_kernels(query_for(p, arch_named("sm_90a"), RuleSet::standard)));
    const ChoiceTable table(*registry.kernels(), arch_named("sm_90a"));
    EXPECT_LT(table.bucket_count() * 4, table.size());
    ChoiceCost cost;
    ASSERT_EQ(table.first(p, 1, 1, &cost).size(), 1u);
    EXPECT_GT(cost.bounded, 50);
    EXPECT_LT(cost.predicted * 4, cost.bounded);
    EXPECT_GE(cost.planned, cost.predicted);
    EXPECT_GT(cost.bounds_us, 0);
}

TEST(ChoiceTable, ThreadsShareIt) {
    const Problem p = *parse_problem("conv_fwd:n=8,g=1,c=64,k=64,in=28x28,filter=3x3,pad=1,dtype=bf16");
    Registry registry;
    registry.add(*list_kernels(query_for(p, arch_named("sm_90a"), RuleSet::standard)));
    const ChoiceTable table(*registry.kernels(), arch_named("sm_90a"));
    const std::string expected = table.first(p, 1, 1).at(0).kernel->name;
    std::vector<std::thread> threads;
    std::atomic<int> same = 0;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 20; ++i) same += table.first(p, 1, 1).at(0).kernel->name == expected ? 1 : 0;
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(same, 80);
}

}  // namespace
}  // namespace tilewise
