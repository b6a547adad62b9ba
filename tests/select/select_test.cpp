// SPDX-License-Identifier: MIT
#include "select/select.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "config/config_name.hpp"
#include "family/family.hpp"
#include "problem/problem_text.hpp"
#include "problem/random_problem.hpp"
#include "registry/rule_set_registry.hpp"
#include "registry/sample_kernels.hpp"

namespace tilewise {
namespace {

constexpr int kThreads = 2;

KernelList kernels_of(const Selection& selection) {
    KernelList kernels;
    for (const Candidate& candidate : selection.candidates) kernels.push_back(candidate.kernel);
    return kernels;
}

std::vector<std::string> keys_of(const Json& object) {
    std::vector<std::string> keys;
    for (const auto& member : *object.object()) keys.push_back(member.first);
    return keys;
}

bool has_keys(const Json& object, std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
        if (!object.find(key)) return false;
    }
    return true;
}

TEST(Select, ThePlanIsTheFirstOfTheAccepted) {
    const ArchSpec& arch = arch_named("gfx942");
    Registry registry;
    registry.add(sample_kernels("gfx942", RuleSet::standard));
    Random random(1);
    int plans = 0;
    for (int i = 0; i < 40; ++i) {
        const Problem problem = i % 2 == 0 ? friendly_problem(random) : random_problem(random);
        const Selection selection = select_kernel(problem, registry, arch, kThreads);
        const Candidates candidates = registry.candidates(problem, arch);
        if (candidates.accepted.empty()) continue;  // others may run it padded
        const bool has_model = has_families(arch.backend, problem.op);
        if (!has_model) {
            ASSERT_EQ(kernels_of(selection), candidates.accepted) << "without a model the order is the registry's";
        }
        const auto padded =
            std::ranges::count_if(selection.candidates, [](const Candidate& one) { return one.padding.has_value(); });
        ASSERT_EQ(selection.rejected.size() + static_cast<std::size_t>(padded), candidates.rejected.size());
        ASSERT_TRUE(selection.plan.has_value());
        ++plans;
        EXPECT_EQ(selection.plan->kernel, selection.candidates.front().kernel);
        EXPECT_EQ(selection.candidates.front().predicted_us.has_value(), has_model);
        EXPECT_TRUE(selection.plan->source == PlanSource::rules || selection.plan->source == PlanSource::first_fit);
        EXPECT_FALSE(selection.plan->why.empty());
    }
    EXPECT_GT(plans, 0);
    EXPECT_LT(plans, 40);
}

// Where there is a model, the kernels are the same ones, the least time of the highest priority first.
TEST(Select, AModelOrdersTheAccepted) {
    const ArchSpec& arch = arch_named("cpu-avx2");
    Registry registry;
    auto kernels = sample_kernels("cpu-avx2", RuleSet::standard);
    Random random(2);
    for (Kernel& kernel : kernels) kernel.priority = random.chance(10) ? Priority::high : Priority::normal;
    registry.add(std::move(kernels));
    int plans = 0;
    for (int i = 0; i < 40; ++i) {
        const Problem problem = i % 2 == 0 ? friendly_problem(random) : random_problem(random);
        const Selection selection = select_kernel(problem, registry, arch, kThreads);
        KernelList ranked = kernels_of(selection), accepted = registry.candidates(problem, arch).accepted;
        if (!ranked.empty() && selection.candidates.front().padding) continue;
        ASSERT_EQ(std::set<KernelPtr>(ranked.begin(), ranked.end()),
                  std::set<KernelPtr>(accepted.begin(), accepted.end()));
        ASSERT_EQ(ranked.size(), accepted.size());
        for (std::size_t c = 0; c < selection.candidates.size(); ++c) {
            const Candidate& candidate = selection.candidates[c];
            ASSERT_TRUE(candidate.predicted_us.has_value());
            ASSERT_TRUE(std::isfinite(*candidate.predicted_us) && *candidate.predicted_us > 0)
                << print_problem(problem) << "\n"
                << candidate.kernel->name << " " << *candidate.predicted_us;
            if (c == 0) continue;
            const Candidate& before = selection.candidates[c - 1];
            ASSERT_GE(before.kernel->priority, candidate.kernel->priority);
            if (before.kernel->priority == candidate.kernel->priority) {
                ASSERT_LE(*before.predicted_us, *candidate.predicted_us);
            }
        }
        if (!selection.plan) continue;
        EXPECT_EQ(selection.plan->kernel, ranked.front());
        ++plans;
    }
    EXPECT_GT(plans, 0);
}

TEST(Select, PriorityDecides) {
    const ArchSpec& arch = arch_named("gfx942");
    const auto problem = parse_problem("gemm:m=512,n=512,k=512,dtype=bf16");
    Registry registry;
    registry.add(sample_kernels("gfx942", RuleSet::standard));
    const auto accepted = registry.candidates(*problem, arch).accepted;
    ASSERT_GT(accepted.size(), 1u);
    Kernel favourite = *accepted.back();
    favourite.priority = Priority::high;
    registry.add(favourite);
    EXPECT_EQ(select_kernel(*problem, registry, arch, kThreads).plan->kernel->name, favourite.name);
}

constexpr std::string_view kAligned = "gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128x64_2x2x1_32x32x16_va8_vb8_vc8@";
constexpr std::string_view kWholeTiles = "gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128x64_2x2x1_32x32x16_pad-none@";
constexpr std::string_view kGeneral = "gemm_bf16_rcr_compv3_default_intrawave_128x128x64_2x2x1_32x32x16@";

Selection select_among(std::initializer_list<std::string_view> names, std::string_view problem) {
    Registry registry;
    for (const std::string_view name : names) {
        registry.add(make_kernel(parse_kernel_name(std::string(name) + "gfx942").value()));
    }
    return select_kernel(parse_problem(problem).value(), registry, arch_named("gfx942"), kThreads);
}

TEST(Select, PaddingComesAfterEveryKernelThatFits) {
    constexpr std::string_view kOdd = "gemm:m=100,n=101,k=102,dtype=bf16,layout=rcr";
    const Selection fits = select_among({kAligned, kGeneral, kWholeTiles}, kOdd);
    ASSERT_TRUE(fits.plan.has_value());
    ASSERT_EQ(fits.candidates.size(), 1u);
    EXPECT_FALSE(fits.candidates[0].padding);
    EXPECT_TRUE(fits.plan->notes.empty());
    EXPECT_EQ(fits.rejected.size(), 2u);

    const Selection padded = select_among({kAligned, kWholeTiles}, kOdd);
    ASSERT_TRUE(padded.plan.has_value());
    EXPECT_EQ(padded.candidates.size(), 2u);
    EXPECT_TRUE(padded.rejected.empty());
    EXPECT_NE(padded.plan->why.find("2 kernels that may run the problem padded, since none may as it is"),
              std::string::npos)
        << padded.plan->why;
    ASSERT_EQ(padded.plan->notes.size(), 1u);
    EXPECT_EQ(padded.plan->notes[0], *padded.candidates[0].padding);
    EXPECT_EQ(padded.plan->notes[0].kind, "padding");

    const Selection none = select_among({kAligned, kWholeTiles}, "gemm:m=100,n=101,k=102,dtype=bf16,layout=ccc");
    EXPECT_FALSE(none.plan.has_value());
    EXPECT_EQ(none.rejected.size(), 2u);
    const Selection tight = select_among({kAligned}, std::string(kOdd) + ",workspace=1K");
    EXPECT_FALSE(tight.plan.has_value());
    EXPECT_EQ(tight.rejected.at(0).why.rule, "fit_workspace");
}

// Where there is a model, what is copied counts: the kernel that pads less wins.
TEST(Select, TheModelCountsTheCopies) {
    const ArchSpec& arch = arch_named("cpu-avx2");
    const std::string config = "gemm_fp32_any_compv3_default_intrawave_96x256x256_1x1x1_6x16x1", at = "@cpu-avx2";
    Registry registry;
    for (const std::string pad : {"_pad-none", "_pad-mn"}) {
        registry.add(make_kernel(parse_kernel_name(config + pad + at).value()));
    }
    const auto problem = parse_problem("gemm:m=960,n=1024,k=1000,dtype=fp32,layout=rcr").value();
    const Selection padded = select_kernel(problem, registry, arch, kThreads);
    ASSERT_EQ(padded.candidates.size(), 2u);
    const auto whole = parse_problem("gemm:m=960,n=1024,k=1024,dtype=fp32,layout=rcr").value();
    const Selection fits = select_kernel(whole, registry, arch, kThreads);
    ASSERT_EQ(fits.candidates.size(), 2u);
    EXPECT_GT(*padded.candidates[0].predicted_us, *fits.candidates[0].predicted_us);
}

// Odd channels begin anywhere: the fastest kernels for whole chunks are offered with the copies, beside those that need none.
TEST(Select, OddChannelsAreOfferedPaddedOnAGpu) {
    const ArchSpec& arch = arch_named("sm_90a");
    const auto is_padded = [](const Candidate& candidate) { return candidate.padding.has_value(); };
    for (const std::string op : {"conv_fwd", "conv_bwd_data", "conv_bwd_weight"}) {
        const std::string text = op + ":n=16,g=1,c=142,k=17,in=56x56,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc";
        const Problem problem = parse_problem(text).value();
        Registry registry;
        registry.add(list_kernels(query_for(problem, arch, RuleSet::standard)).value());
        const Selection told = select_kernel(problem, registry, arch, kThreads);
        const auto padded = std::count_if(told.candidates.begin(), told.candidates.end(), is_padded);
        EXPECT_GT(padded, 0) << op;
        EXPECT_LT(padded, std::ssize(told.candidates)) << op;
        EXPECT_TRUE(is_padded(told.candidates.front())) << op;
        ASSERT_EQ(told.plan->notes.size(), 1u) << op;
        EXPECT_EQ(told.plan->notes[0], *told.candidates.front().padding);
        EXPECT_NE(told.plan->why.find("of them padded"), std::string::npos) << told.plan->why;
        EXPECT_EQ(told.rejected_count, told.rejected.size());
        EXPECT_EQ(told.rejected_count + told.candidates.size(), registry.size());
        for (std::size_t i = 1; i < told.candidates.size(); ++i) {
            EXPECT_LE(*told.candidates[i - 1].predicted_us, *told.candidates[i].predicted_us);
        }
        const Selection counted = select_kernel(problem, registry, arch, kThreads, Reasons::counted);
        EXPECT_EQ(counted.rejected_count, told.rejected_count);
        const Problem even = parse_problem(op + ":n=16,g=1,c=144,k=24,in=56x56,filter=3x3,pad=1x1,dtype=bf16").value();
        const Selection whole = select_kernel(even, registry, arch, kThreads);
        EXPECT_FALSE(std::any_of(whole.candidates.begin(), whole.candidates.end(), is_padded)) << op;
    }
}

// Their kernels take few input channels as they are; only the others are filled up to whole accesses.
TEST(Select, ColumnsAreChosenForFewInputChannels) {
    const ArchSpec& arch = arch_named("sm_90a");
    for (const std::string_view text : {"conv_bwd_data:n=32,c=2,k=288,in=48x48,filter=5x5,stride=2,pad=2,dtype=bf16",
                                        "conv_bwd_data:n=16,c=1,k=392,in=64x64,filter=3x3,stride=2,pad=1,dtype=bf16",
                                        "conv_bwd_data:n=64,c=3,k=255,in=64x64,filter=3x3,stride=2,pad=1,dtype=bf16"}) {
        const Problem problem = parse_problem(text).value();
        Registry registry;
        registry.add(list_kernels(query_for(problem, arch, RuleSet::standard)).value());
        const Selection selection = select_kernel(problem, registry, arch, kThreads);
        const Candidate& first = selection.candidates.front();
        EXPECT_EQ(first.kernel->config.gather, Gather::columns) << text;
        EXPECT_TRUE(!first.padding || first.padding->message.find("c from") == std::string::npos) << text;
    }
}

TEST(Select, AnEmptyRegistryHasNoPlan) {
    const auto problem = parse_problem("gemm:m=512,n=512,k=512,dtype=bf16");
    const Selection selection = select_kernel(*problem, Registry(), arch_named("gfx942"), kThreads);
    EXPECT_FALSE(selection.plan.has_value());
    EXPECT_EQ(selection_to_json(selection).dump(), R"({"plan":null,"candidates":[],"rejected":[]})");
}

// {plan:{kernel, source, why}, candidates:[{name, predicted_us}], rejected:[{name, rule, have, need}]}
TEST(Select, JsonHasTheShapeOthersRelyOn) {
    const ArchSpec& arch = arch_named("gfx942");
    const auto problem = parse_problem("gemm:m=512,n=512,k=512,dtype=bf16");
    Registry registry;
    registry.add(sample_kernels());
    const Selection selection = select_kernel(*problem, registry, arch, kThreads);
    ASSERT_TRUE(selection.plan.has_value());
    const Json json = selection_to_json(selection);
    EXPECT_EQ(keys_of(json), (std::vector<std::string>{"plan", "candidates", "rejected"}));
    ASSERT_TRUE(has_keys(*json.find("plan"), {"kernel", "source", "why", "id", "available"}));
    EXPECT_EQ(*json.find("plan")->find("kernel")->string(), selection.plan->kernel->name);
    const auto& candidates = *json.find("candidates")->array();
    ASSERT_EQ(candidates.size(), selection.candidates.size());
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        EXPECT_EQ(*candidates[i].find("name")->string(), selection.candidates[i].kernel->name);
        EXPECT_TRUE(has_keys(candidates[i], {"predicted_us"}));
    }
    const auto& rejected = *json.find("rejected")->array();
    ASSERT_EQ(rejected.size(), selection.rejected.size());
    ASSERT_GT(rejected.size(), 0u);
    for (std::size_t i = 0; i < rejected.size(); ++i) {
        EXPECT_EQ(*rejected[i].find("name")->string(), selection.rejected[i].kernel->name);
        for (const char* key : {"rule", "have", "need"}) EXPECT_FALSE(rejected[i].find(key)->string()->empty());
    }
}

}  // namespace
}  // namespace tilewise
