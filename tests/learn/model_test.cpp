// SPDX-License-Identifier: MIT
#include "learn/model.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "config/archs.hpp"
#include "learn/test_model.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

constexpr const char* kModelArch = "cpu-avx2";

Model model_with(double mean = 0) {
    auto card = ModelCard::parse(card_text(Op::gemm, kModelArch, {"blocked_gemm m4"}, mean), "card");
    EXPECT_TRUE(card.ok()) << card.error().message;
    auto model = Model::make(std::move(*card), one_test(Op::gemm, "tile_m", 64, -0.2, 0.4), "place");
    EXPECT_TRUE(model.ok()) << model.error().message;
    return std::move(*model);
}

KernelConfig config_of(int tile_m, int rows = 4) {
    KernelConfig config;
    config.arch = kModelArch, config.tile = {tile_m, 64, 64}, config.warp_tile = {rows, 16, 1};
    return config;
}

// Estimates of a small tile, a large one, and one of a kind that was not seen.
std::vector<Estimate> estimates(const Model& model, const std::string& text, double* weight = nullptr) {
    const Problem problem = *parse_problem(text);
    const WorkProblem work(problem, arch_named(kModelArch), 1);
    const ProblemFeatures features(work);
    const KernelConfig small = config_of(64), large = config_of(128), other = config_of(64, 8);
    const PricedKernel priced[] = {{&small, 10, {}}, {&large, 10, {}}, {&other, 10, {}}};
    std::vector<Estimate> found(3);
    model.estimate(features, priced, found);
    if (weight) *weight = model.weight(features);
    return found;
}

TEST(LearnedModel, CorrectsTheAnalyticTime) {
    const auto found = estimates(model_with(), "gemm:m=512,n=512,k=512,dtype=fp32,layout=rcr");
    EXPECT_NEAR(found[0].us, 10 * std::exp(-0.2), 1e-9);
    EXPECT_NEAR(found[1].us, 10 * std::exp(0.4), 1e-9);
    EXPECT_NEAR(*found[0].error, std::expm1(0.05), 1e-12);
}

TEST(LearnedModel, AKindThatWasNotSeenGetsTheMeanCorrection) {
    const auto found = estimates(model_with(0.1), "gemm:m=512,n=512,k=512,dtype=fp32,layout=rcr");
    EXPECT_NEAR(found[2].us, 10 * std::exp(0.1), 1e-9);
    EXPECT_FALSE(found[2].error.has_value());
}

// The data go from 1 to 2^12.
TEST(LearnedModel, TheCorrectionFadesBeyondTheData) {
    const std::pair<int, double> kWeights[] = {{12, 1}, {13, 1}, {14, 0}, {16, 0}};
    for (const auto& [octave, expected] : kWeights) {
        double weight = -1;
        const auto found =
            estimates(model_with(0.1), fmt::format("gemm:m={},n=64,k=64,dtype=fp32,layout=rcr", 1 << octave), &weight);
        EXPECT_EQ(weight, expected) << octave;
        EXPECT_NEAR(found[0].correction, expected * -0.2 + (1 - expected) * 0.1, 1e-12) << octave;
    }
    double weight = 0;
    estimates(model_with(), fmt::format("gemm:m={},n=64,k=64,dtype=fp32,layout=rcr", 3 << 12), &weight);
    EXPECT_NEAR(weight, 2 - std::log2(3), 1e-12);
}

TEST(LearnedModel, TellsWhatSetsTwoKernelsApart) {
    const Problem problem = *parse_problem("gemm:m=512,n=512,k=512,dtype=fp32,layout=rcr");
    const WorkProblem work(problem, arch_named(kModelArch), 1);
    const KernelConfig small = config_of(64), large = config_of(128);
    const auto effects = model_with().effects(ProblemFeatures(work), {&small, 10, {}}, {&large, 10, {}}, 5);
    ASSERT_EQ(effects.size(), 1U);
    EXPECT_EQ(effects[0].name, "tile_m");
    EXPECT_NEAR(effects[0].correction, -0.6, 1e-12);
}

TEST(LearnedModel, ConfidenceIsAChanceByTheErrorsOfTheKinds) {
    const Estimate first{10, 0, 0.05}, same{10, 0, 0.05}, slower{12, 0, 0.05}, unseen{12, 0, std::nullopt};
    EXPECT_NEAR(confidence(first, same), 0.5, 1e-12);
    EXPECT_GT(confidence(first, slower), 0.99);
    EXPECT_LT(confidence(first, unseen), confidence(first, slower));
    EXPECT_NEAR(confidence(slower, first), 1 - confidence(first, slower), 1e-12);
}

TEST(LearnedModel, WhatDoesNotFitIsRefusedWithBothValues) {
    const std::string good = card_text(Op::gemm, kModelArch, {"blocked_gemm m4"});
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = good;
        const std::size_t at = text.find(from);
        EXPECT_NE(at, std::string::npos) << from;
        return text.replace(at, from.size(), to);
    };
    const std::string& own = feature_schema(Op::gemm).hash;
    const std::pair<std::string, std::string> kBroken[] = {
        {good.substr(0, good.size() / 2), "card"},
        {"[]", "not an object"},
        {with(own, "0123456789abcdef"), "have the feature hash '0123456789abcdef'; need '" + own},
        {with("\"op\":\"gemm\"", "\"op\":\"gem\""), "gem"},
        {with("log_ratio", "tflops"), "needs 'log_ratio'"},
        {with("\"format\":1", "\"format\":2"), "needs a whole number from 1 to 1"},
        {with("\"log2_k\":[0,12]", "\"log2_k\":[12,0]"), "two ascending numbers for log2_k"},
        {with("\"rows\":100", "\"rows\":\"many\""), "'blocked_gemm m4' needs rows"},
        {with("[\"fp32\"]", "[\"fp33\"]"), "fp33"},
        {with("\"mean\":0", "\"mean\":50"), "mean: needs a number from -3 to 3"},
    };
    for (const auto& [text, what] : kBroken) {
        const auto card = ModelCard::parse(text, "card");
        ASSERT_FALSE(card.ok()) << what;
        EXPECT_NE(card.error().message.find(what), std::string::npos) << card.error().message;
    }
    auto card = ModelCard::parse(good, "card");
    ASSERT_TRUE(card.ok());
    const auto other = Model::make(std::move(*card), one_test(Op::conv_fwd, "tile_m", 64, 0, 1), "place");
    ASSERT_FALSE(other.ok());
    EXPECT_NE(other.error().message.find("'place/model.txt' has other columns"), std::string::npos)
        << other.error().message;
}

}  // namespace
}  // namespace tilewise
