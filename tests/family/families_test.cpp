// SPDX-License-Identifier: MIT
// The table of families: a row for every name, code for what the rule sets list, and a reason for what has none.
#include "family/families.hpp"

#include <gtest/gtest.h>

#include <set>

#include "config/archs.hpp"
#include "config/geometry.hpp"
#include "config/random_config.hpp"
#include "config/rule_set.hpp"
#include "family/code_rules.hpp"

namespace tilewise {
namespace {

std::vector<const ArchSpec*> archs_with_code() {
    std::vector<const ArchSpec*> list;
    for (const ArchSpec& arch : embedded_archs().archs()) {
        if (has_families(arch.backend)) list.push_back(&arch);
    }
    return list;
}

// A template that names no vendor serves several backends, with a row for each.
TEST(Families, HaveOneRowForEachNameAndBackend) {
    std::set<std::pair<FamilyId, Backend>> rows;
    std::set<FamilyId> seen;
    for (const Family* family : families()) {
        EXPECT_TRUE(rows.emplace(family->id, family->backend).second) << family->name();
        seen.insert(family->id);
        EXPECT_FALSE(family->ops.empty()) << family->name();
        EXPECT_FALSE(family->description.empty()) << family->name();
    }
    EXPECT_EQ(seen.size(), EnumNames<FamilyId>::names.size());
}

TEST(Families, FixedFieldsExist) {
    for (const Family* family : families()) {
        for (const std::string_view name : family->fixed)
            EXPECT_NE(find_field(name), nullptr) << family->name() << ' ' << name;
    }
}

// Each has kernels in the default set of some arch, so none is dead. What the recipes of that set name has code, but for blocks of many
// sums, which a rule tells apart better than a list (registry/rule_set_registry.hpp).
TEST(Families, AllHaveKernels) {
    std::set<const Family*> seen;
    for (const ArchSpec* arch : archs_with_code()) {
        for (const Op op : kAllOps) {
            for (const DTypePair& pair : pairs_of(*arch)) {
                const auto configs = expand(*arch, op, pair, RuleSet::standard, std::nullopt);
                ASSERT_TRUE(configs.ok());
                for (const KernelConfig& config : *configs) {
                    Rejected why;
                    const bool has = has_code(config, *arch, &why);
                    EXPECT_TRUE(has || why.rule == "code_registers")
                        << kernel_name(config) << ": " << why.rule << ": " << why.have;
                    if (has) seen.insert(find_family(config, *arch));
                }
            }
        }
    }
    for (const Family* family : families()) EXPECT_TRUE(seen.contains(family)) << family->name();
}

// A file of recipes/ is named after the family whose kernels it makes.
TEST(Families, HaveOneRecipeEach) {
    std::set<std::pair<Backend, std::string_view>> named, written;
    for (const Family* family : families()) {
        named.emplace(family->backend, family->name());
    }
    for (const Backend backend : kAllBackends) {
        for (const Recipe& recipe : *recipes_of(backend)) written.emplace(backend, recipe.name);
    }
    EXPECT_EQ(named, written);
}

TEST(Families, AConfigWithoutAFamilySaysSo) {
    for (const Op op : kAllOps) {
        for (const Backend backend : kAllBackends) EXPECT_TRUE(has_families(backend, op)) << name_of(op);
    }
    const auto config = parse_kernel_name(
        "grouped_conv_fwd_bf16_nhwgc_2d_basic_async_v1_default_intrawave_32x64x1_4x1x1_8x64x1_va8_vc8_spec-depthwise@"
        "gfx942");
    Rejected why;
    EXPECT_FALSE(has_code(config.value(), arch_named("gfx942"), &why));
    EXPECT_EQ(why.rule, "code_family");
    EXPECT_FALSE(why.need.empty());
}

// The rule for shared memory counts the bytes that blocks are launched with. Loops on MFMA may have more buffers than a config can name:
// those that have code keep within the chip's memory by a rule of their own.
TEST(Families, LaunchWithWhatTheRuleForSharedMemoryCounts) {
    std::set<FamilyId> seen;
    for (const char* name : {"sm_80", "sm_90a", "gfx942"}) {
        const ArchSpec& arch = arch_named(name);
        for (const Op op : kAllOps) {
            const auto configs = expand(arch, op, RuleSet::full);
            ASSERT_TRUE(configs.ok());
            for (const KernelConfig& c : *configs) {
                const std::int64_t bytes = launch_spec(c, arch).shared_bytes * c.blocks_per_unit;
                if (family_of(c) == FamilyId::mfma_gemm || family_of(c) == FamilyId::mfma_conv) {
                    ASSERT_TRUE(bytes <= arch.shared_bytes || !has_code(c, arch)) << kernel_name(c);
                } else {
                    ASSERT_EQ(bytes, shared_bytes(c, arch)) << kernel_name(c);
                }
                seen.insert(family_of(c));
            }
        }
    }
    for (const Family* family : families())
        EXPECT_TRUE(!family->is_gpu() || seen.contains(family->id)) << family->name();
}

// A plain yes or no and a reason agree, whatever the numbers are.
TEST(Families, NoCodeHasAReason) {
    Random random(4);
    for (const ArchSpec* arch : archs_with_code()) {
        for (int i = 0; i < draws(2000); ++i) {
            const KernelConfig config =
                random.chance(50) ? nearly_valid_config(random, *arch) : random_config(random, 50);
            Rejected why;
            const bool has = has_code(config, *arch, &why);
            ASSERT_EQ(has, has_code(config, *arch)) << kernel_name(config);
            if (has) continue;
            ASSERT_FALSE(why.rule.empty() || why.have.empty() || why.need.empty()) << kernel_name(config);
        }
    }
}

}  // namespace
}  // namespace tilewise
