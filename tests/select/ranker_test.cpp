// SPDX-License-Identifier: MIT
#include "select/ranker.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "problem/problem_text.hpp"
#include "registry/sample_kernels.hpp"
#include "select/learned_ranker.hpp"
#include "select/measured_ranker.hpp"
#include "select/tuned_ranker.hpp"

namespace tilewise {
namespace {

const char* const kRanked = "gemm:m=64,n=64,k=64,dtype=fp32,layout=rcr";

Selection selection_on(const std::string& arch) {
    Registry registry;
    registry.add(sample_kernels(arch, RuleSet::tiny));
    return select_kernel(*parse_problem(kRanked), registry, arch_named(arch), 1);
}

std::vector<Ranker> chain_of(Strategy strategy) {
    SelectOptions options;
    options.strategy = strategy;
    const auto rankers = rankers_of(options);
    return {rankers.begin(), rankers.end()};
}

TEST(Ranker, AStrategyIsAListOfRankers) {
    EXPECT_EQ(chain_of(Strategy::automatic),
              (std::vector<Ranker>{rank_by_tuned_record, rank_by_learned_model, rank_by_model, rank_by_priority}));
    EXPECT_EQ(chain_of(Strategy::model), (std::vector<Ranker>{rank_by_learned_model, fail_without_learned_model}));
    EXPECT_EQ(chain_of(Strategy::rules), (std::vector<Ranker>{rank_by_model, rank_by_priority}));
    EXPECT_EQ(chain_of(Strategy::first_fit), (std::vector<Ranker>{rank_by_priority}));
    EXPECT_EQ(chain_of(Strategy::measure),
              (std::vector<Ranker>{rank_by_kept_measurement, order_by_learned_model, rank_by_measuring}));
    SelectOptions callers;
    callers.strategy = Strategy::measure;
    callers.rank = [](const Problem&, const std::vector<Candidate>&) { return std::vector<std::string>(); };
    ASSERT_EQ(rankers_of(callers).size(), 1U);
    EXPECT_EQ(rankers_of(callers).front(), rank_by_caller);
}

TEST(Ranker, TheModelPassesWhereItPredictsNothing) {
    const Problem problem = *parse_problem(kRanked);
    const SelectOptions options;
    Selection predicted = selection_on("cpu-generic"), unpredicted = predicted;
    ASSERT_GT(predicted.candidates.size(), 1U);
    for (Candidate& candidate : unpredicted.candidates) candidate.predicted_us.reset();
    const auto chosen = rank_by_model({problem, options}, predicted);
    ASSERT_TRUE(chosen.ok() && chosen->plan.has_value());
    EXPECT_EQ(chosen->plan->source, PlanSource::rules);
    EXPECT_EQ(chosen->plan->kernel, predicted.candidates.front().kernel);
    const auto passed = rank_by_model({problem, options}, unpredicted);
    ASSERT_TRUE(passed.ok());
    EXPECT_FALSE(passed->plan.has_value());

    ASSERT_TRUE(choose({problem, options}, unpredicted).ok());
    EXPECT_EQ(unpredicted.plan->source, PlanSource::first_fit);
    const auto least =
        std::min_element(predicted.candidates.begin(), predicted.candidates.end(),
                         [](const Candidate& a, const Candidate& b) { return a.kernel->name < b.kernel->name; });
    EXPECT_EQ(unpredicted.plan->kernel, least->kernel);
    EXPECT_NE(unpredicted.plan->why.find("may not"), std::string::npos) << unpredicted.plan->why;
}

TEST(Ranker, FirstFitAsksNoModel) {
    const Problem problem = *parse_problem(kRanked);
    SelectOptions options;
    options.strategy = Strategy::first_fit;
    Selection selection = selection_on("cpu-generic");
    // The order that the model gave must not matter.
    std::reverse(selection.candidates.begin(), selection.candidates.end());
    ASSERT_TRUE(choose({problem, options}, selection).ok());
    EXPECT_EQ(selection.plan->source, PlanSource::first_fit);
    EXPECT_EQ(selection.plan->why, "the first by priority and name");
    for (const Candidate& candidate : selection.candidates) {
        EXPECT_LE(selection.plan->kernel->name, candidate.kernel->name);
    }
}

TEST(Ranker, ACallersRankingThatNamesNoneEndsTheChoice) {
    const Problem problem = *parse_problem(kRanked);
    SelectOptions options;
    Selection selection = selection_on("cpu-generic");
    const std::string last = selection.candidates.back().kernel->name;
    options.rank = [&](const Problem&, const std::vector<Candidate>&) {
        return std::vector<std::string>{"none", last};
    };
    ASSERT_TRUE(choose({problem, options}, selection).ok());
    EXPECT_EQ(selection.plan->kernel->name, last);
    EXPECT_EQ(selection.plan->source, PlanSource::callback);
    options.rank = [](const Problem&, const std::vector<Candidate>&) { return std::vector<std::string>{"none"}; };
    const auto status = choose({problem, options}, selection);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace tilewise
