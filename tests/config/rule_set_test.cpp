// SPDX-License-Identifier: MIT
// The rule sets keep their promises, for every arch, operation and pair of input types.
#include "config/rule_set.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <unordered_set>

#include "config/archs.hpp"
#include "config/family_id.hpp"
#include "config/rules.hpp"

namespace tilewise {
namespace {

using Names = std::unordered_set<std::string>;

class RuleSets : public EachArch {
protected:
    std::vector<KernelConfig> configs(Op op, const DTypePair& pair, RuleSet set) const {
        auto result = expand(arch(), op, pair, set);
        EXPECT_TRUE(result.ok()) << result.error().message;
        return result ? *result : std::vector<KernelConfig>{};
    }

    Names names(Op op, const DTypePair& pair, RuleSet set) const {
        Names result;
        for (const KernelConfig& config : configs(op, pair, set)) result.insert(kernel_name(config));
        return result;
    }

    std::string where(Op op, const DTypePair& pair) const {
        return fmt::format("{} {} {}", arch().name, name_of(op), print_pair(pair));
    }

    // Reports how many of `inner` are not in `outer`, and one of them.
    void expect_within(const Names& inner, const Names& outer, const std::string& what) const {
        std::string example;
        std::size_t missing = 0;
        for (const std::string& name : inner) {
            if (outer.contains(name)) continue;
            ++missing;
            if (example.empty() || name < example) example = name;
        }
        EXPECT_EQ(missing, 0u) << what << ": " << missing << " of " << inner.size() << " are not, such as " << example;
    }
};

// One test, because each set of each type is expanded once for all of it.
TEST_P(RuleSets, AreNestedAndSizedAsTheManualSays) {
    for (const Op op : kAllOps) {
        for (const DTypePair& pair : pairs_of(arch())) {
            const Names full = names(op, pair, RuleSet::full), full_tests = names(op, pair, RuleSet::full_tests);
            const Names tiny = names(op, pair, RuleSet::tiny), profiler = names(op, pair, RuleSet::profiler);
            expect_within(tiny, full_tests, where(op, pair) + " tiny in full-tests");
            expect_within(full_tests, full, where(op, pair) + " full-tests in full");
            expect_within(names(op, pair, RuleSet::tests), full, where(op, pair) + " tests in full");
            expect_within(names(op, pair, RuleSet::standard), full, where(op, pair) + " default in full");
            expect_within(profiler, full, where(op, pair) + " profiler in full");

            // Small enough for a quick build of everything, large enough to be more than the features.
            EXPECT_GE(tiny.size(), std::min<std::size_t>(10, full_tests.size())) << where(op, pair);
            EXPECT_LE(tiny.size(), 40u) << where(op, pair);
            if (full.empty()) continue;
            const double share = static_cast<double>(profiler.size()) / static_cast<double>(full.size());
            EXPECT_GE(share, 0.12) << where(op, pair) << ": profiler has " << profiler.size() << " of " << full.size();
            EXPECT_LE(share, 0.4) << where(op, pair) << ": profiler has " << profiler.size() << " of " << full.size();
        }
    }
}

// Valid on the arch, of the asked operation and types, each once, the same every time. A set is empty only where nothing
// is possible: int8 gradients are not computed, everything else has kernels in every type the arch has.
TEST_P(RuleSets, ExpandToValidConfigsOnceEach) {
    for (const Op op : kAllOps) {
        for (const DTypePair& pair : pairs_of(arch())) {
            const bool impossible = pair.a == DType::int8 && (op == Op::conv_bwd_data || op == Op::conv_bwd_weight);
            for (const RuleSet set : kAllRuleSets) {
                const auto expanded = configs(op, pair, set);
                EXPECT_EQ(expanded.empty(), impossible) << where(op, pair) << " " << name_of(set);
                // The sampled sets are made from full, the others in the same way as it: these two stand for all.
                if (set == RuleSet::full || set == RuleSet::tiny) {
                    ASSERT_EQ(expanded, configs(op, pair, set)) << where(op, pair) << " " << name_of(set);
                }
                Names seen;
                for (const KernelConfig& config : expanded) {
                    const std::string name = kernel_name(config);
                    ASSERT_TRUE(seen.insert(name).second) << name << " twice in " << name_of(set);
                    ASSERT_TRUE(is_valid(config, arch())) << name;
                    ASSERT_EQ(config.op, op);
                    ASSERT_EQ(config.dtype, pair.a);
                    ASSERT_EQ(config.dtype_b, pair.b);
                    ASSERT_EQ(config.arch, arch().name);
                }
            }
        }
        EXPECT_TRUE(configs(op, {DType::fp32, DType::bf16}, RuleSet::full).empty()) << "a pair the arch does not have";
    }
}

// Each pipeline with each scheduler that the arch file gives it for the operation, over all types together: a pair
// may be impossible in one type (a known-bad rule, or a shape that does not exist).
TEST_P(RuleSets, FullTestsHasEveryPipelineSchedulerPair) {
    for (const Op op : kAllOps) {
        std::set<std::pair<Pipeline, Scheduler>> seen;
        const auto tests = expand(arch(), op, RuleSet::full_tests);
        ASSERT_TRUE(tests.ok());
        for (const KernelConfig& config : *tests) {
            seen.insert({config.pipeline, config.scheduler});
        }
        for (std::size_t p = 0; p < kPipelineCount; ++p) {
            const auto pipeline = static_cast<Pipeline>(p);
            const PipelineSpec& spec = arch().pipeline(pipeline);
            if (!spec.supported || !spec.ops[static_cast<std::size_t>(op)]) continue;
            for (std::size_t s = 0; s < kSchedulerCount; ++s) {
                if (!spec.schedulers[s]) continue;
                const auto scheduler = static_cast<Scheduler>(s);
                EXPECT_TRUE(seen.contains({pipeline, scheduler}))
                    << name_of(op) << " " << name_of(pipeline) << " " << name_of(scheduler);
            }
        }
    }
}

// Each feature that the arch file lists for the operation is in tiny, in at least one type.
TEST_P(RuleSets, TinyHasEveryFeature) {
    const std::map<std::string_view, bool (*)(const KernelConfig&)> features = {
        {"two_stage", [](const KernelConfig& c) { return c.two_stage; }},
        {"num_groups_to_merge", [](const KernelConfig& c) { return c.num_groups_to_merge > 1; }},
        {"split_image", [](const KernelConfig& c) { return c.split_image; }},
        {"explicit_gemm", [](const KernelConfig& c) { return c.explicit_gemm; }},
        {"stream_k", [](const KernelConfig& c) { return c.stream_k != StreamK::off; }},
        {"specialization", [](const KernelConfig& c) { return c.specialization == Specialization::depthwise; }},
    };
    for (const Op op : kAllOps) {
        const auto tiny = expand(arch(), op, RuleSet::tiny);
        for (const auto& [field, has] : features) {
            if (!arch().has_option(field, op) || (field == "specialization" && arch().depthwise_tiles.empty()))
                continue;
            EXPECT_TRUE(std::any_of(tiny->begin(), tiny->end(), has)) << name_of(op) << " " << field;
        }
    }
}

// So is every way that kernels for a few vectors have to read, of 16-bit types in each.
TEST_P(RuleSets, TinyHasEveryWayToReadVectors) {
    if (arch().backend != Backend::cuda) return;
    for (const DType dtype : {DType::fp16, DType::bf16}) {
        const auto tiny = expand(arch(), Op::gemm, {dtype, dtype}, RuleSet::tiny);
        for (const FamilyId family : {FamilyId::gemv, FamilyId::gemv_rows}) {
            for (const bool anywhere : {false, true}) {
                EXPECT_TRUE(std::any_of(tiny->begin(), tiny->end(),
                                        [&](const KernelConfig& c) {
                                            return family_of(c) == family && gemv_reads(c).by_element &&
                                                   gemv_reads(c).anywhere == anywhere;
                                        }))
                    << name_of(dtype) << " " << name_of(family) << " " << anywhere;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Archs, RuleSets, testing::ValuesIn(arch_names()), test_name);

TEST(RuleSetCategory, NamesTheFeature) {
    KernelConfig c;
    EXPECT_EQ(category(c), "regular");
    c.split_k = 2;
    EXPECT_EQ(category(c), "split_k");
    c.two_stage = true;
    EXPECT_EQ(category(c), "two_stage");
    c.specialization = Specialization::depthwise;
    EXPECT_EQ(category(c), "depthwise");
}

bool has_warpgroups(const KernelConfig& c) { return c.warp_tile.m == 64; }

// An arch has the recipes of its backend as far as its numbers carry them, whatever its name: without warpgroups, nothing that
// needs them; with them, that comes first.
TEST(RuleSetFeatures, FollowFromTheArch) {
    constexpr DTypePair kHalf{DType::fp16, DType::fp16};
    ArchSpec hopper = arch_named("sm_90a");
    hopper.name = "sm_new";
    const auto with = expand(hopper, Op::gemm, kHalf, RuleSet::standard);
    ASSERT_TRUE(with.ok());
    ASSERT_EQ(with->size(), expand(arch_named("sm_90a"), Op::gemm, kHalf, RuleSet::standard)->size());
    EXPECT_TRUE(has_warpgroups(with->front()));
    EXPECT_FALSE(has_warpgroups(with->back()));
    const auto strips = [](const KernelConfig& c) { return c.specialization == Specialization::depthwise; };
    const auto depthwise = [&](const ArchSpec& arch) {
        const auto configs = expand(arch, Op::conv_fwd, kHalf, RuleSet::standard);
        return std::count_if(configs->begin(), configs->end(), strips);
    };
    const auto before = depthwise(hopper);
    hopper.wide_wave_rows = 0;
    const auto without = expand(hopper, Op::gemm, kHalf, RuleSet::standard);
    ASSERT_FALSE(without->empty());
    EXPECT_TRUE(std::none_of(without->begin(), without->end(), has_warpgroups));
    EXPECT_GT(before, depthwise(hopper)) << "also blocks that the arch's numbers would allow";
}

}  // namespace
}  // namespace tilewise
