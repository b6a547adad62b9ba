// SPDX-License-Identifier: MIT
#include "config/config_name.hpp"

#include <gtest/gtest.h>

#include <map>

#include "config/archs.hpp"
#include "config/random_config.hpp"
#include "config/rule_set.hpp"

namespace tilewise {
namespace {

// Values in every field, sparse and crowded, valid or not: no two configs share a name, and each name reads back.
TEST(ConfigName, PrintThenParseIsTheIdentity) {
    Random random(1);
    std::map<std::string, KernelConfig> seen;
    for (int i = 0; i < draws(20000); ++i) {
        const KernelConfig config = random_config(random, i % 3 == 0 ? 10 : i % 3 == 1 ? 50 : 100);
        const std::string name = kernel_name(config);
        const auto again = parse_kernel_name(name);
        ASSERT_TRUE(again.ok()) << again.error().message;
        ASSERT_EQ(*again, config) << name;
        const auto [at, is_new] = seen.emplace(name, config);
        ASSERT_TRUE(is_new || at->second == config) << name;
    }
}

// Each field alone, so that no other field's tag stands between it and the leading ones.
TEST(ConfigName, EachFieldShowsInTheName) {
    Random random(2);
    for (const ConfigField& field : config_fields()) {
        for (int i = 0; i < 100; ++i) {
            KernelConfig config = random_config(random, 0);
            KernelConfig changed = config;
            ASSERT_TRUE(field.parse(changed, random_value(field, random)).ok());
            ASSERT_EQ(kernel_name(changed) == kernel_name(config), changed == config) << field.name;
            ASSERT_EQ(*parse_kernel_name(kernel_name(changed)), changed) << kernel_name(changed);
        }
    }
}

// A dimension that a GEMM cannot have is refused by a rule; until then its name must not hide it.
TEST(ConfigName, AGemmWithDimensionsIsNotNamedLikeOneWithout) {
    KernelConfig plain;
    plain.arch = "gfx942";
    KernelConfig odd = plain;
    odd.ndim = 2;
    EXPECT_NE(kernel_name(odd), kernel_name(plain));
}

TEST(ConfigName, DefaultsDoNotShow) {
    Random random(3);
    for (int i = 0; i < 500; ++i) {
        KernelConfig config = random_config(random, 0);
        const std::string name = kernel_name(config);
        for (const ConfigField& field : config_fields()) {
            if (field.role == Role::lead) continue;
            field.reset(config);
            EXPECT_EQ(kernel_name(config), name) << field.name;
        }
    }
}

class ConfigNameOfRuleSets : public EachArch {};

TEST_P(ConfigNameOfRuleSets, AreShortAndReadBack) {
    for (const Op op : kAllOps) {
        for (const RuleSet set : {RuleSet::full, RuleSet::standard}) {
            const auto configs = expand(arch(), op, set);
            ASSERT_TRUE(configs.ok());
            for (const KernelConfig& config : *configs) {
                const std::string name = kernel_name(config);
                ASSERT_LE(name.size(), kMaxNameLength) << name;
                const auto again = parse_kernel_name(name);
                ASSERT_TRUE(again.ok()) << again.error().message;
                ASSERT_EQ(*again, config);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Archs, ConfigNameOfRuleSets, testing::ValuesIn(arch_names()), test_name);

struct Golden {
    std::string_view name, id;
};

// Ids name files, caches and records: if one of these changes, all that users have stored is lost. (Values of
// coreutils: printf %s NAME | sha256sum | cut -c1-16.)
TEST(ConfigName, IdsNeverChange) {
    const Golden golden[] = {
        {"gemm_bf16_rcr_compv4_cshuffle_intrawave_256x128x64_2x2x1_32x32x16_va8_vb8_vc8_dsb@gfx942",
         "1da39e10752ecebc"},
        {"gemm_fp8_rcr_compv6_cshuffle_intrawave_128x256x128_2x1x1_64x256x32_b-bf8_va16_vb16_vc8_stages4_pers_sk-"
         "atomic_pw1_no-det@sm_90a",
         "d9a84d07c2b2d4d0"},
        {"gemm_bf16_any_compv3_default_intrawave_192x1024x768_1x1x1_1x64x1_splitk2@cpu-avx2", "f88996d0be1d942c"},
        {"grouped_conv_fwd_fp16_nhwgc_2d_mem_cshuffle_interwave_128x32x32_2x1x1_16x8x16_va8_vb8_vc8_stages8_merge4@sm_"
         "80",
         "556029c3978a2268"},
        {"grouped_conv_bwd_data_bf16_ndhwgc_3d_basic_async_v1_default_intrawave_64x64x32_2x2x1_16x16x16_out-fp32_pad-"
         "mn_splitimage@gfx90a",
         "cdcbf7bd602d6b6b"},
        {"grouped_conv_bwd_weight_fp8_any_1d_basic_v1_default_intrawave_64x256x1_1x1x1_4x16x1_b-bf8_twostage_spec-"
         "depthwise_filter4_stride1@cpu-avx2",
         "bcc63749cef4ac52"},
        {"gemm_fp32_ccr_preshuffle_default_auto_128x128x32_2x2x1_16x16x8_math-tf32x3_va4_vb4_vc4_cluster2x1_raster-"
         "hilbert_group8_swap_bpu2@gfx950",
         "75bc96816559a5b4"},
    };
    for (const auto& [name, id] : golden) {
        const auto config = parse_kernel_name(name);
        ASSERT_TRUE(config.ok()) << config.error().message;
        EXPECT_EQ(kernel_name(*config), name);
        EXPECT_EQ(kernel_id(name), id) << name;
    }
}

TEST(ConfigName, CodeIdIgnoresLaunchFieldsOnly) {
    Random random(4);
    for (int i = 0; i < 300; ++i) {
        const KernelConfig config = random_config(random, 30);
        for (const ConfigField& field : config_fields()) {
            KernelConfig changed = config;
            ASSERT_TRUE(field.parse(changed, random_value(field, random)).ok());
            if (changed == config) continue;
            if (field.mark == Mark::launch) {
                ASSERT_EQ(code_id(changed), code_id(config)) << field.name;
            } else {
                ASSERT_NE(code_id(changed), code_id(config)) << field.name;
            }
        }
    }
    // Two kernels of one binary may differ in these; anything more is a decision, not an accident.
    std::vector<std::string_view> launch;
    for (const ConfigField& field : config_fields()) {
        if (field.mark == Mark::launch) launch.push_back(field.name);
    }
    EXPECT_EQ(launch, (std::vector<std::string_view>{"split_k", "raster", "raster_group"}));
}

TEST(ConfigName, BadNamesAreRefusedWithTheReason) {
    const std::string lead = "gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128x64_2x2x1_32x32x16";
    const std::pair<std::string, std::string_view> cases[] = {
        {"", "no @arch"},
        {"@", "begins with none of"},
        {lead, "no @arch"},
        {lead + "@", "from a-z"},
        {lead + "@GFX", "from a-z"},
        {"gemmm_bf16@gfx942", "begins with none of gemm, grouped_conv_fwd"},
        {"gemm_@gfx942", "field dtype"},
        {"gemm_bf17_rcr_compv3@gfx942", "did you mean 'bf16'"},
        {"gemm_bf16_rcr_compv9_cshuffle@gfx942", "field pipeline"},
        {"gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128_2x2x1_32x32x16@gfx942", "field tile"},
        {"gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128x64_2x2x1@gfx942", "field warp_tile"},
        {"grouped_conv_fwd_bf16_nhwgc_2_mem_default_interwave_64x64x32_2x2x1_16x16x16@gfx90a", "expected 1d, 2d or 3d"},
        {lead + "_foo@gfx942", "'foo' is no field, or out of place"},
        {lead + "_va8_va8@gfx942", "'va8' is no field, or out of place"},
        {lead + "_vb8_va8@gfx942", "'va8' is no field, or out of place"},
        {lead + "_va@gfx942", "is no field, or out of place"},
        {lead + "_math@gfx942", "is no field, or out of place"},
        {lead + "_math-exact@gfx942", "field math"},
        {lead + "_va1@gfx942", "is spelled"},
        {lead + "_va08@gfx942", "is spelled"},
        {lead + "_det@gfx942", "is spelled"},
        {lead + "_no-dsb@gfx942", "is spelled"},
        {lead + "_@gfx942", "is spelled"},
        {lead + "__va8@gfx942", "is spelled"},
        {lead + "_splitk99999999@gfx942", "field split_k"},
    };
    for (const auto& [name, why] : cases) {
        const auto result = parse_kernel_name(name);
        ASSERT_FALSE(result.ok()) << name;
        EXPECT_EQ(result.error().code, ErrorCode::usage);
        EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
    }
    EXPECT_LT(parse_kernel_name(std::string(1000000, 'x') + "@y").error().message.size(), 500u);
}

}  // namespace
}  // namespace tilewise
