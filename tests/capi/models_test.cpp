// SPDX-License-Identifier: MIT
// Features, trees and times of learned models through the C interface, and a choice by a model that a context has loaded.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "capi/last_error.hpp"
#include "tilewise/tilewise.h"

namespace {

namespace fs = std::filesystem;

const char* const kProduct = "gemm:m=512,n=512,k=512,dtype=fp32,layout=rcr";
const char* const kQuery = R"({"arch":"cpu-avx2","threads":1})";

template <class Call>
std::string text_from(const Call& call) {
    char* text = nullptr;
    EXPECT_EQ(call(&text), TILEWISE_OK) << last_error();
    std::string copy = text ? text : "";
    tilewise_free(text);
    return copy;
}

// What stands between two texts, the first time.
std::string between(const std::string& text, const std::string& before, const std::string& after) {
    const std::size_t begin = text.find(before) + before.size();
    return text.substr(begin, text.find(after, begin) - begin);
}

class CapiModels : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_NE(mkdtemp(root_.data()), nullptr);
        schema_ = text_from([](char** out) { return tilewise_feature_schema("gemm", out); });
        std::string quoted = between(schema_, R"("names":[)", "]");
        for (const char c : quoted) {
            if (c != '"') names_ += c == ',' ? ' ' : c;
        }
        columns_ = static_cast<std::size_t>(std::count(names_.begin(), names_.end(), ' ')) + 1;
        const std::string selection = text_from(
            [](char** out) { return tilewise_select(kProduct, R"({"arch":"cpu-avx2","strategy":"rules"})", out); });
        for (std::size_t at = selection.find("\"candidates\"");
             (at = selection.find("\"name\":\"", at)) != std::string::npos;) {
            at += 8;
            kernels_.push_back(selection.substr(at, selection.find('"', at) - at));
            if (kernels_.size() == 12) break;
        }
        ASSERT_EQ(kernels_.size(), 12U);
    }
    void TearDown() override { fs::remove_all(root_); }

    // A model whose kernels with a tile of at most `rows` rows are slower, others faster than the analytic model says.
    void write_model(int rows, const std::string& hash) const {
        std::string kinds;
        for (const std::string& kernel : kernels_) {
            const std::string kind = text_from([&](char** out) { return tilewise_kernel_kind(kernel.c_str(), out); });
            if (kinds.find('"' + kind + '"') == std::string::npos) {
                kinds += (kinds.empty() ? "\"" : ",\"") + kind + R"(":{"rows":50,"error":0.1})";
            }
        }
        std::ofstream(root_ + "/model.json")
            << R"({"format":1,"op":"gemm","arch":"cpu-avx2","dtypes":["fp32"],"features":{"hash":")" << hash
            << R"("},"target":"log_ratio","ranges":{"log2_m":[0,12],"log2_n":[0,12],"log2_k":[0,12],"log2_batch":[0,3]},"kinds":{)"
            << kinds << "}}";
        const std::string before = names_.substr(0, names_.find("tile_m"));
        std::ofstream(root_ + "/model.txt")
            << "tree\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=" << columns_ - 1
            << "\nfeature_names=" << names_
            << "\n\nTree=0\nnum_leaves=2\nnum_cat=0\nsplit_feature=" << std::count(before.begin(), before.end(), ' ')
            << "\nthreshold=" << rows
            << "\ndecision_type=2\nleft_child=-1\nright_child=-2\nleaf_value=0.5 -0.5\n\nend of trees\n";
    }
    std::string hash() const { return between(schema_, R"("hash":")", "\""); }

    std::string root_ = (fs::temp_directory_path() / "tilewise-capi-models-XXXXXX").string();
    std::string schema_, names_;
    std::size_t columns_ = 0;
    std::vector<std::string> kernels_;
};

TEST_F(CapiModels, FeaturesAndTimes) {
    std::vector<const char*> names;
    for (const std::string& kernel : kernels_) names.push_back(kernel.c_str());
    names.push_back("gemm_fp32_rcr_compv3_cshuffle_intrawave_64x64x16_2x2x1_16x8x8@sm_80");  // of another arch
    const auto count = static_cast<std::int64_t>(names.size());
    std::vector<double> rows(names.size() * columns_), analytic(names.size()), scores(names.size()), us(names.size()),
        again(names.size()), error(names.size());
    ASSERT_EQ(tilewise_features(kProduct, kQuery, names.data(), count, rows.data(), analytic.data()), TILEWISE_OK)
        << last_error();
    EXPECT_TRUE(std::isnan(analytic.back()) && std::isnan(rows.back()));
    EXPECT_EQ(rows[0], 9);  // log2 of m
    EXPECT_EQ(tilewise_features(kProduct, kQuery, names.data(), count, nullptr, nullptr), TILEWISE_OK);

    write_model(32, hash());
    ASSERT_EQ(tilewise_predict(root_.c_str(), rows.data(), count - 1, scores.data()), TILEWISE_OK) << last_error();
    ASSERT_EQ(tilewise_predict_times(root_.c_str(), kProduct, kQuery, names.data(), count, us.data(), again.data(),
                                     error.data()),
              TILEWISE_OK)
        << last_error();
    for (std::size_t i = 0; i + 1 < names.size(); ++i) {
        EXPECT_EQ(again[i], analytic[i]);
        EXPECT_NEAR(us[i], analytic[i] * std::exp(scores[i]), 1e-9 * us[i]);
        EXPECT_NEAR(error[i], std::expm1(0.1), 1e-12);
    }
    EXPECT_TRUE(std::isnan(us.back()) && std::isnan(error.back()));
}

TEST_F(CapiModels, AContextChoosesByAModelThatItLoads) {
    tilewise_context_options options{};
    options.size = sizeof options, options.arch = "cpu-generic", options.threads = 1;
    tilewise_context* context = nullptr;
    ASSERT_EQ(tilewise_context_create("cpu", &options, &context), TILEWISE_OK) << last_error();
    write_model(32, hash());
    EXPECT_EQ(tilewise_load_models(context, root_.c_str()), TILEWISE_UNSUPPORTED);
    EXPECT_NE(last_error().find("is for cpu-avx2; this device is cpu-generic"), std::string::npos) << last_error();
    write_model(32, "0123456789abcdef");
    EXPECT_EQ(tilewise_load_models(context, root_.c_str()), TILEWISE_USAGE);
    EXPECT_NE(last_error().find("have the feature hash '0123456789abcdef'; need '" + hash()), std::string::npos)
        << last_error();
    tilewise_context_destroy(context);
    const char* arch = "cpu-avx2";
    options.arch = arch;
    if (tilewise_context_create("cpu", &options, &context) != TILEWISE_OK) GTEST_SKIP() << "this CPU is no " << arch;
    write_model(32, hash());
    ASSERT_EQ(tilewise_load_models(context, root_.c_str()), TILEWISE_OK) << last_error();
    tilewise_select_options choice{};
    choice.size = sizeof choice, choice.strategy = "model";
    tilewise_plan* plan = nullptr;
    ASSERT_EQ(tilewise_plan_create(context, kProduct, &choice, &plan), TILEWISE_OK) << last_error();
    EXPECT_STREQ(tilewise_plan_source(plan), "model");
    const std::string json = text_from([&](char** out) { return tilewise_plan_describe(plan, out); });
    EXPECT_NE(json.find(R"("weight":1)"), std::string::npos) << json.substr(0, 600);
    tilewise_plan_destroy(plan);
    tilewise_context_destroy(context);
}

TEST_F(CapiModels, WhatCannotBeReadIsRefused) {
    char* text = nullptr;
    EXPECT_EQ(tilewise_feature_schema("gem", &text), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_feature_schema(nullptr, &text), TILEWISE_USAGE);
    double number = 0;
    const char* kernel = "nothing@cpu-avx2";
    EXPECT_EQ(tilewise_features(kProduct, kQuery, &kernel, 1, &number, &number), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_features(kProduct, kQuery, nullptr, 1, &number, &number), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_features(kProduct, "{\"cores\":1}", nullptr, 0, &number, &number), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_predict(root_.c_str(), &number, 1, &number), TILEWISE_USAGE);
    EXPECT_NE(last_error().find("model.json' is no file"), std::string::npos) << last_error();
    EXPECT_EQ(tilewise_predict(nullptr, &number, 1, &number), TILEWISE_USAGE);
    EXPECT_EQ(tilewise_predict_times(root_.c_str(), kProduct, kQuery, nullptr, -1, &number, &number, &number),
              TILEWISE_USAGE);
}

}  // namespace
