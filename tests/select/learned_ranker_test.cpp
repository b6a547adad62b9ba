// SPDX-License-Identifier: MIT
#include "select/learned_ranker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "config/archs.hpp"
#include "device/null/null_device.hpp"
#include "learn/test_model.hpp"
#include "registry/rule_set_registry.hpp"
#include "select/dispatcher.hpp"
#include "select/measured_ranker.hpp"
#include "select/test_problems.hpp"

namespace tilewise {
namespace {

namespace fs = std::filesystem;

const char* const kLearnedProblem = "gemm:m=1024,n=1024,k=1024,dtype=fp32,layout=rcr";

// A dispatcher for an arch that is not here, and a folder for models of it.
class LearnedRanker : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_NE(mkdtemp(root_.data()), nullptr);
        BuildSettings settings;
        settings.cache_dir = root_ + "/cache";
        builder_ = std::make_unique<Builder>(std::move(settings));
    }
    void TearDown() override { fs::remove_all(root_); }

    // Every kind of kernel was seen; those with `column` at most `threshold` are faster than the analytic model says, others slower.
    void learn(Op op, const std::string& column, double threshold, double factor = 1, double mean = 0) {
        std::set<std::string> kinds;
        for (const std::string& text :
             {std::string(kLearnedProblem),
              std::string("conv_fwd:n=8,c=64,k=64,in=28x28,filter=3x3,pad=1x1,dtype=fp32,layout=nhwgc")}) {
            auto kernels = list_kernels(query_for(*parse_problem(text), device_.arch(), RuleSet::standard));
            ASSERT_TRUE(kernels.ok());
            for (const Kernel& kernel : *kernels) kinds.insert(print_kind(kind_of(kernel.config)));
        }
        write_model(folder(op), card_text(op, device_.arch().name, {kinds.begin(), kinds.end()}, mean),
                    one_test(op, column, threshold, -0.7 * factor, 0.7 * factor));
    }
    std::string folder(Op op) const { return root_ + "/models/" + std::string(name_of(op)); }

    std::unique_ptr<Dispatcher> dispatcher() {
        models_ = std::make_unique<ModelStore>(std::vector<std::string>{root_ + "/models"});
        auto made = std::make_unique<Dispatcher>(device_, *builder_, nullptr);
        made->use_models(*models_);
        return made;
    }

    std::string root_ = (fs::temp_directory_path() / "tilewise-learned-XXXXXX").string();
    NullDevice device_{arch_named("cpu-avx2")};
    std::unique_ptr<Builder> builder_;
    std::unique_ptr<ModelStore> models_;
};

TEST_F(LearnedRanker, WithoutAModelNothingChanges) {
    Dispatcher plain(device_, *builder_, nullptr);
    const auto with = dispatcher();
    for (const std::string text : {kLearnedProblem, "gemm:m=77,n=5,k=300,dtype=fp32,layout=rrr"}) {
        const Problem problem = *parse_problem(text);
        const auto a = plain.plan(problem), b = with->plan(problem);
        ASSERT_TRUE(a.ok() && b.ok());
        EXPECT_EQ((*a)->kernel->name, (*b)->kernel->name);
        EXPECT_EQ((*b)->source, PlanSource::rules);
        EXPECT_EQ((*a)->why, (*b)->why);
        EXPECT_EQ((*b)->learned, nullptr);
    }
    SelectOptions options;
    options.strategy = Strategy::model;
    const auto none = with->plan(*parse_problem(kLearnedProblem), options);
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, ErrorCode::unsupported);
    EXPECT_NE(none.error().message.find("no learned model for gemm in fp32 on cpu-avx2"), std::string::npos)
        << none.error().message;
}

TEST_F(LearnedRanker, TheCorrectedTimesDecide) {
    const Problem problem = *parse_problem(kLearnedProblem);
    const auto analytic = Dispatcher(device_, *builder_, nullptr).select(problem);
    ASSERT_TRUE(analytic.ok());
    const KernelConfig& first = analytic->plan->kernel->config;
    // Against what the analytic model prefers, if the others allow for it.
    int least = first.tile.m;
    for (const std::size_t place : places_to_learn(analytic->candidates)) {
        least = std::min(least, analytic->candidates[place].kernel->config.tile.m);
    }
    ASSERT_LT(least, first.tile.m) << "no smaller tile is looked at";
    learn(Op::gemm, "tile_m", first.tile.m - 1);
    const auto with = dispatcher();
    const auto selection = with->select(problem);
    ASSERT_TRUE(selection.ok() && selection->plan);
    const Plan& plan = *selection->plan;
    EXPECT_EQ(plan.source, PlanSource::model);
    EXPECT_LT(plan.kernel->config.tile.m, first.tile.m);
    ASSERT_TRUE(plan.learned);
    EXPECT_NEAR(plan.learned->estimate.correction, -0.7, 1e-12);
    EXPECT_EQ(plan.learned->weight, 1);
    ASSERT_FALSE(plan.learned->effects.empty());
    EXPECT_EQ(plan.learned->effects[0].name, "tile_m");
    EXPECT_NE(plan.why.find("the learned model gives it"), std::string::npos) << plan.why;
    // What was looked at comes first, by its corrected time.
    const auto& candidates = selection->candidates;
    EXPECT_EQ(candidates.size(), analytic->candidates.size());
    for (std::size_t i = 0; i + 1 < candidates.size(); ++i) {
        if (candidates[i + 1].learned) {
            EXPECT_LE(*candidates[i].predicted_us, *candidates[i + 1].predicted_us);
        }
    }
    SelectOptions rules;
    rules.strategy = Strategy::rules;
    EXPECT_EQ((*with->plan(problem, rules))->kernel->name, analytic->plan->kernel->name);
    // Those that would be measured begin with the model's first.
    EXPECT_EQ(kernels_to_measure(*selection, {}, device_.arch()).front(), plan.kernel);
}

// Those that were not looked at have the mean correction in their times. It is taken out before they are looked at.
TEST_F(LearnedRanker, TheMeanCorrectionCountsOnce) {
    const Problem problem = *parse_problem(kLearnedProblem);
    const auto analytic = Dispatcher(device_, *builder_, nullptr).select(problem);
    learn(Op::gemm, "tile_n", 48, 1, 0.5);
    auto selection = dispatcher()->select(problem);
    ASSERT_TRUE(analytic.ok() && selection.ok());
    ASSERT_TRUE(selection->candidates.front().learned);
    std::erase_if(selection->candidates, [](const Candidate& candidate) { return candidate.learned.has_value(); });
    ASSERT_FALSE(selection->candidates.empty());
    const SelectOptions options;
    RankContext context{problem, options};
    context.arch = &device_.arch();
    context.models = models_.get();
    ASSERT_TRUE(rank_by_learned_model(context, *selection).ok());
    ASSERT_TRUE(selection->candidates.front().learned);
    for (const Candidate& candidate : selection->candidates) {
        const double us = candidate.learned ? candidate.learned->analytic_us : *candidate.predicted_us / std::exp(0.5);
        const auto before = std::ranges::find_if(
            analytic->candidates, [&](const Candidate& one) { return one.kernel->name == candidate.kernel->name; });
        ASSERT_NE(before, analytic->candidates.end());
        EXPECT_NEAR(us / *before->predicted_us, 1, 1e-9) << candidate.kernel->name;
    }
}

// The plan that is found without ranking all is the one of the whole ranking.
TEST_F(LearnedRanker, APlanIsTheFirstOfTheSelection) {
    learn(Op::gemm, "tile_n", 48, 0.3);
    learn(Op::conv_fwd, "tile_m", 48, 0.3);
    const auto with = dispatcher();
    Random random(5);
    int learned = 0;
    for (int i = 0; i < 60; ++i) {
        const Problem problem = random_layer(random);
        const auto plan = with->plan(problem);
        const auto selection = with->select(problem);
        ASSERT_EQ(plan.ok(), selection.ok() && selection->plan.has_value()) << print_problem(problem);
        if (!plan) continue;
        EXPECT_EQ((*plan)->kernel->name, selection->plan->kernel->name) << print_problem(problem);
        EXPECT_EQ((*plan)->source, selection->plan->source) << print_problem(problem);
        if ((*plan)->learned) {
            EXPECT_EQ((*plan)->learned->estimate.us, selection->plan->learned->estimate.us);
        }
        learned += (*plan)->source == PlanSource::model ? 1 : 0;
    }
    EXPECT_GT(learned, 5);
}

TEST_F(LearnedRanker, APlanBeyondTheDataSaysSo) {
    learn(Op::gemm, "tile_n", 48);
    const auto with = dispatcher();
    const auto plan = with->plan(*parse_problem("gemm:m=12288,n=256,k=256,dtype=fp32,layout=rcr"));
    ASSERT_TRUE(plan.ok() && (*plan)->learned);
    EXPECT_LT((*plan)->learned->weight, 1);
    EXPECT_NE((*plan)->why.find("of the correction counts, since the problem lies beyond the model's data"),
              std::string::npos)
        << (*plan)->why;
}

// Whatever is wrong with a file: a note, and the analytic model.
TEST_F(LearnedRanker, ABrokenModelIsANote) {
    learn(Op::gemm, "tile_n", 48);
    std::ofstream(folder(Op::gemm) + "/model.txt") << "tree\nnum_class=1\n";
    const auto with = dispatcher();
    const auto plan = with->plan(*parse_problem(kLearnedProblem));
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ((*plan)->source, PlanSource::rules);
    ASSERT_FALSE((*plan)->notes.empty());
    EXPECT_EQ((*plan)->notes[0].kind, "model");
    SelectOptions options;
    options.strategy = Strategy::model;
    const auto refused = with->plan(*parse_problem(kLearnedProblem), options);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message.find("/model.txt', line 2"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace tilewise
