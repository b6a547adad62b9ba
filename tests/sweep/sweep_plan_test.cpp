// SPDX-License-Identifier: MIT
#include "sweep/sweep_plan.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/files.hpp"
#include "config/archs.hpp"
#include "config/config_json.hpp"
#include "config/config_name.hpp"
#include "device/null/null_device.hpp"
#include "problem/problem_text.hpp"
#include "select/needed_code.hpp"

namespace tilewise {
namespace {

TEST(SweepOrder, IsAPermutationThatTheSeedDecides) {
    const auto order = sweep_order(100, 1, {});
    std::set<std::size_t> all(order.begin(), order.end());
    EXPECT_EQ(all.size(), 100u);
    EXPECT_EQ(*all.rbegin(), 99u);
    EXPECT_EQ(sweep_order(100, 1, {}), order);
    EXPECT_NE(sweep_order(100, 2, {}), order);
    EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
}

TEST(SweepOrder, ShardsHaveEachProblemOnce) {
    std::set<std::size_t> all;
    for (std::size_t i = 0; i < 3; ++i) {
        for (const std::size_t index : sweep_order(100, 1, {i, 3})) EXPECT_TRUE(all.insert(index).second);
    }
    EXPECT_EQ(all.size(), 100u);
}

struct PlannedKernelsTest : testing::Test {
    NullDevice device{**embedded_archs().find("sm_90a")};
    Builder builder{BuildSettings{}};
    Dispatcher dispatcher{device, builder, nullptr};
    const Problem problem = *parse_problem("gemm:m=1024,n=1000,k=512,dtype=bf16,layout=rcr");

    std::vector<std::string> names(const PoolOptions& options) {
        const auto planned = planned_kernels(dispatcher, problem, options);
        EXPECT_TRUE(planned.ok()) << planned.error().message;
        std::vector<std::string> list;
        for (const PlannedKernel& one : *planned) list.push_back(one.kernel->name);
        return list;
    }
};

TEST_F(PlannedKernelsTest, ASampleIsTheBestOtherKindsAndSomeOfTheRest) {
    const auto all = names({}), sample = names({.pool = KernelPool::sample});
    ASSERT_GT(all.size(), 60u);
    EXPECT_LE(sample.size(), 24u + 8u + 8u);
    EXPECT_GT(sample.size(), 24u + 8u);
    EXPECT_TRUE(std::equal(all.begin(), all.begin() + 24, sample.begin()));
    EXPECT_EQ(names({.pool = KernelPool::sample}), sample);
    EXPECT_NE(names({.pool = KernelPool::sample, .seed = 1}), sample) << "other ones of the rest";
    const std::set<std::string> distinct(sample.begin(), sample.end());
    EXPECT_EQ(distinct.size(), sample.size());
}

TEST_F(PlannedKernelsTest, AreThoseThatAreBuiltAhead) {
    for (const KernelPool pool : {KernelPool::all, KernelPool::sample}) {
        NeedOptions options;
        options.pool = pool;
        options.seed = 3;
        const auto needed = needed_kernels({&problem, 1}, device.arch(), options);
        ASSERT_TRUE(needed.ok()) << needed.error().message;
        std::set<std::string> ahead;
        for (const NeededKernel& one : *needed) ahead.insert(one.kernel->name);
        const auto measured = names({.pool = pool, .seed = 3});
        EXPECT_EQ(ahead, std::set(measured.begin(), measured.end()));
    }
}

TEST_F(PlannedKernelsTest, AShortListIsSampledWhole) {
    const auto planned = planned_kernels(dispatcher, problem, {.rule_set = RuleSet::tiny, .pool = KernelPool::sample});
    ASSERT_TRUE(planned.ok());
    EXPECT_EQ(planned->size(), names({.rule_set = RuleSet::tiny}).size());
}

KernelConfig config_of_another_arch() {
    return *parse_kernel_name("gemm_fp32_any_basic_v1_default_intrawave_48x128x128_1x1x1_4x8x1@cpu-generic");
}

TEST_F(PlannedKernelsTest, OnlyNamedKernelsAreRejectedWithTheirRule) {
    const auto all = planned_kernels(dispatcher, problem, {});
    ASSERT_TRUE(all.ok());
    EXPECT_TRUE(std::none_of(all->begin(), all->end(), [](const PlannedKernel& one) { return one.rejected; }));
    std::vector<KernelConfig> configs = {all->front().kernel->config, all->front().kernel->config,
                                         config_of_another_arch()};
    configs[1].dtype = configs[1].dtype_b = DType::fp16;
    const auto named = planned_kernels(dispatcher, problem, {.configs = &configs});
    ASSERT_TRUE(named.ok());
    ASSERT_EQ(named->size(), 3u);
    EXPECT_FALSE((*named)[0].rejected);
    EXPECT_TRUE((*named)[0].predicted_us);
    EXPECT_TRUE((*named)[1].rejected && !(*named)[1].rejected->rule.empty());
    EXPECT_EQ((*named)[2].rejected->rule, "arch");
}

struct SweepConfigsTest : testing::Test {
    const std::string path =
        std::filesystem::temp_directory_path() / ("tilewise-sweep-config-" + std::to_string(getpid()) + ".json");
    const std::string name = "gemm_bf16_rcr_compv3_default_intrawave_64x64x32_2x2x1_16x8x16@sm_90a";

    ~SweepConfigsTest() override { std::filesystem::remove(path); }
    Result<std::vector<KernelConfig>> read(const std::string& text) {
        EXPECT_TRUE(write_file(path, text).ok());
        return read_sweep_configs(path);
    }
};

TEST_F(SweepConfigsTest, ListsOfValuesAreAllTried) {
    Json config = config_to_json(*parse_kernel_name(name));
    Json::Object lists;
    for (const Json::Member& member : *config.object()) {
        const bool is_split = member.first == "split_k";
        if (!is_split) lists.push_back(member);
    }
    lists.push_back({"split_k", Json(Json::Array{1, 2, 4})});
    const auto configs = read(Json(lists).dump());
    ASSERT_TRUE(configs.ok()) << configs.error().message;
    ASSERT_EQ(configs->size(), 3u);
    EXPECT_EQ(configs->back().split_k, 4);
    const auto names = read(Json(Json::Array{Json(name), Json(name), Json(lists)}).dump());
    ASSERT_TRUE(names.ok());
    EXPECT_EQ(names->size(), 3u) << "each once";
}

TEST_F(SweepConfigsTest, WhatIsWrongIsNamedWithItsPlace) {
    const struct {
        const char *text, *told;
    } kCases[] = {
        {"{\n \"tile\": [128],\n \"colour\": [\"red\"]}", "colour"},
        {"[]", "no config"},
        {"[\n3]", "line 2"},
        {"[\"gemm_nonsense@sm_90a\"]", "line 1"},
        {"{", "line 1"},
    };
    for (const auto& [text, told] : kCases) {
        const auto configs = read(text);
        ASSERT_FALSE(configs.ok()) << text;
        EXPECT_NE(configs.error().message.find(path), std::string::npos) << configs.error().message;
        EXPECT_NE(configs.error().message.find(told), std::string::npos) << configs.error().message;
    }
}

}  // namespace
}  // namespace tilewise
