// SPDX-License-Identifier: MIT
// Thousands of random configs per arch through check and correction: never a crash, and the outcome keeps its word.
#include <gtest/gtest.h>

#include "config/archs.hpp"
#include "config/random_config.hpp"
#include "config/rules.hpp"

namespace tilewise {
namespace {

const int kConfigs = draws(10000);

class Correct : public EachArch {
protected:
    // Wild ones find what crashes, nearly valid ones what a correction gets wrong.
    KernelConfig next(Random& random) const {
        if (random.chance(60)) return nearly_valid_config(random, arch());
        KernelConfig c = random_config(random, static_cast<int>(random.between(0, 100)));
        if (random.chance(90)) c.arch = arch().name;
        return c;
    }
};

void expect_violations(const std::vector<Rejected>& violations) {
    for (const Rejected& why : violations) {
        EXPECT_NE(find_config_rule(why.rule), nullptr) << why.rule;
        EXPECT_FALSE(why.have.empty()) << why.rule;
        EXPECT_FALSE(why.need.empty()) << why.rule;
    }
}

// Applies the changes one by one, so that a change that is not told, or told wrongly, shows.
KernelConfig replay(KernelConfig config, const std::vector<Change>& changes) {
    for (const Change& change : changes) {
        const ConfigField* field = find_field(change.field);
        EXPECT_NE(field, nullptr) << change.field;
        EXPECT_NE(find_config_rule(change.rule), nullptr) << change.rule;
        if (!field) continue;
        std::string before;
        field->print(config, before);
        EXPECT_EQ(before, change.from) << change.field;
        EXPECT_NE(change.from, change.to) << change.field;
        EXPECT_TRUE(field->parse(config, change.to).ok()) << change.field << " " << change.to;
    }
    return config;
}

TEST_P(Correct, CheckIsYesOrNoWithReasons) {
    Random random(1);
    int valid = 0;
    for (int i = 0; i < kConfigs; ++i) {
        const KernelConfig config = next(random);
        const auto violations = check_config(config, arch());
        ASSERT_EQ(is_valid(config, arch()), violations.empty()) << kernel_name(config);
        expect_violations(violations);
        valid += violations.empty() ? 1 : 0;
        ASSERT_FALSE(HasFailure()) << kernel_name(config);
    }
    EXPECT_GT(valid, kConfigs / 100) << "too few valid ones to mean much";
    EXPECT_LT(valid, kConfigs / 2) << "too few broken ones to mean much";
}

TEST_P(Correct, KeepsItsWord) {
    Random random(2);
    int mended = 0;
    for (int i = 0; i < kConfigs; ++i) {
        const KernelConfig config = next(random);
        const Correction result = correct_config(config, arch());
        ASSERT_EQ(result.remaining, check_config(result.config, arch())) << kernel_name(config);
        expect_violations(result.remaining);
        ASSERT_EQ(result.config.tile, config.tile) << "the tile is the user's: " << kernel_name(config);
        ASSERT_EQ(replay(config, result.changes), result.config) << kernel_name(config);
        if (is_valid(config, arch())) {
            ASSERT_TRUE(result.changes.empty()) << "changed though valid: " << kernel_name(config);
        } else if (result.remaining.empty()) {
            ++mended;
        }
        ASSERT_FALSE(HasFailure()) << kernel_name(config);
    }
    EXPECT_GT(mended, kConfigs / 20);
}

// Asking again must not find more to do: what is left would be said to be beyond correction when it is not.
TEST_P(Correct, IsIdempotent) {
    Random random(3);
    for (int i = 0; i < kConfigs / 2; ++i) {
        const KernelConfig config = next(random);
        const Correction once = correct_config(config, arch());
        const Correction twice = correct_config(once.config, arch());
        ASSERT_TRUE(twice.changes.empty())
            << "from      " << kernel_name(config) << "\ncorrected " << kernel_name(once.config) << "\nand again "
            << kernel_name(twice.config) << "\n"
            << twice.changes.front().field << " by " << twice.changes.front().rule;
        ASSERT_EQ(twice.config, once.config);
    }
}

INSTANTIATE_TEST_SUITE_P(Archs, Correct, testing::ValuesIn(arch_names()), test_name);

// Many options at once that the arch does not have: each is put back, however many there are.
TEST(CorrectOptions, AreAllPutBack) {
    const auto config = parse_kernel_name(
        "gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128x64_2x2x1_32x32x16_va8_vb8_vc8"
        "_cluster2x1_swap_gather-async@gfx942");
    ASSERT_TRUE(config.ok());
    KernelConfig many = *config;
    many.stages = 2;
    many.producer_waves = 1;
    many.two_stage = many.explicit_gemm = many.split_image = true;
    const Correction result = correct_config(many, arch_named("gfx942"));
    EXPECT_TRUE(result.remaining.empty()) << result.remaining.front().rule << ": " << result.remaining.front().have;
    EXPECT_EQ(kernel_name(result.config),
              "gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128x64_2x2x1_32x32x16_va8_vb8_vc8@gfx942");
}

TEST(CorrectOptions, ConvolutionOptionsAreAllPutBack) {
    const auto config = parse_kernel_name(
        "grouped_conv_fwd_bf16_nhwgc_2d_compv3_cshuffle_intrawave_128x128x32_2x2x1_32x32x16_va8_vb8_vc8"
        "_pers_splitk4_cluster2x1_swap_gather-async_explicit_twostage@gfx942");
    ASSERT_TRUE(config.ok());
    const Correction result = correct_config(*config, arch_named("gfx942"));
    for (const Rejected& why : result.remaining) ADD_FAILURE() << why.rule << ": " << why.have << "; " << why.need;
    EXPECT_EQ(kernel_name(result.config),
              "grouped_conv_fwd_bf16_nhwgc_2d_compv3_cshuffle_intrawave_128x128x32_2x2x1_32x32x16_va8_vb8_vc8@gfx942");
}

TEST(CorrectShape, FindsTheNearestWaveAndWarpTile) {
    const auto config =
        parse_kernel_name("gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128x64_3x2x1_32x32x16_va8_vb8_vc8@gfx942");
    const Correction result = correct_config(*config, arch_named("gfx942"));
    EXPECT_TRUE(result.remaining.empty());
    EXPECT_EQ(result.config.wave, (Shape3{2, 2, 1}));
    EXPECT_EQ(result.config.warp_tile, (Shape3{32, 32, 16}));
    ASSERT_EQ(result.changes.size(), 1u);
    EXPECT_EQ(result.changes.front().field, "wave");
    EXPECT_EQ(result.changes.front().from, "3x2x1");
    EXPECT_EQ(result.changes.front().to, "2x2x1");
}

}  // namespace
}  // namespace tilewise
