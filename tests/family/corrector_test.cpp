// SPDX-License-Identifier: MIT
// Random configs on every arch that has code: a correction always ends in a valid config that has some.
#include "family/corrector.hpp"

#include <gtest/gtest.h>

#include "config/archs.hpp"
#include "config/random_config.hpp"
#include "family/family.hpp"

namespace tilewise {
namespace {

// TILEWISE_TEST_CORRECTIONS=10000 is what `make test-kernels` draws.
int count() {
    const char* const given = std::getenv("TILEWISE_TEST_CORRECTIONS");
    return given ? std::atoi(given) : draws(1000);
}

class CorrectorOn : public EachArch {};

TEST_P(CorrectorOn, EndsInCodeWhereThereIsAny) {
    Random random(6);
    Corrector corrector(arch());
    for (int i = 0; i < count(); ++i) {
        KernelConfig config = random.chance(60) ? nearly_valid_config(random, arch()) : random_config(random, 50);
        config.arch = arch().name;
        const Correction result = corrector.correct(config);
        const std::string trace = kernel_name(config) + "\n" + kernel_name(result.config);
        ASSERT_EQ(result.remaining, check_config(result.config, arch())) << trace;
        if (!has_families(arch().backend, config.op)) continue;
        ASSERT_TRUE(result.remaining.empty()) << trace;
        ASSERT_TRUE(has_code(result.config, arch())) << trace;
        if (is_valid(config, arch()) && has_code(config, arch())) {
            ASSERT_TRUE(result.changes.empty()) << trace;
        }
        ASSERT_TRUE(corrector.correct(result.config).changes.empty()) << "asked again, it changes more: " << trace;
    }
}

// Every change is told with its rule, in the order it was made.
TEST_P(CorrectorOn, TellsItsChanges) {
    Random random(7);
    Corrector corrector(arch());
    for (int i = 0; i < count() / 5; ++i) {
        KernelConfig config = nearly_valid_config(random, arch());
        config.arch = arch().name;
        const Correction result = corrector.correct(config);
        for (const Change& change : result.changes) {
            EXPECT_FALSE(change.rule.empty());
            std::string before;
            find_field(change.field)->print(config, before);
            ASSERT_EQ(before, change.from) << change.field;
            ASSERT_TRUE(find_field(change.field)->parse(config, change.to).ok());
        }
        ASSERT_EQ(config, result.config);
    }
}

INSTANTIATE_TEST_SUITE_P(Archs, CorrectorOn, testing::ValuesIn(arch_names()), test_name);

TEST(Corrector, KeepsWhatHasCode) {
    const ArchSpec& arch = arch_named("sm_90a");
    const auto config = parse_kernel_name(
        "gemm_bf16_rcr_compv6_cshuffle_interwave_128x256x64_2x1x1_64x256x16_va8_vb8_vc8_stages4@sm_90a");
    const Correction result = Corrector(arch).correct(config.value());
    EXPECT_EQ(result.config.tile, config->tile);
    EXPECT_EQ(result.config.scheduler, Scheduler::intrawave);
    EXPECT_EQ(result.config.producer_waves, 1);
    EXPECT_TRUE(has_code(result.config, arch));
}

// The original's default GEMM config, with each pipeline and type that an arch lists for it.
KernelConfig original_default(const ArchSpec& arch, Pipeline pipeline, DType dtype) {
    KernelConfig config;
    config.arch = arch.name;
    config.dtype = config.dtype_b = dtype;
    config.dtype_out = default_output(dtype);
    config.dtype_acc = default_accumulator(dtype);
    config.layout = Layout::rcr;
    config.pipeline = pipeline;
    config.epilogue = Epilogue::cshuffle;
    config.tile = {128, 128, 32}, config.wave = {2, 2, 1}, config.warp_tile = {32, 32, 16};
    return config;
}

TEST(Corrector, KeepsTypePipelineAndLayout) {
    for (const char* name : {"sm_90a", "sm_80", "cpu-avx2"}) {
        const ArchSpec& arch = arch_named(name);
        Corrector corrector(arch);
        for (const DTypePair& pair : pairs_of(arch)) {
            if (pair.a != pair.b) continue;
            for (std::size_t i = 0; i < kPipelineCount; ++i) {
                const auto pipeline = static_cast<Pipeline>(i);
                const bool is_producer = arch.pipeline(pipeline).producers;
                if (!arch.pipeline(pipeline).supported || (is_producer && pair.a == DType::fp32)) continue;
                const KernelConfig config = original_default(arch, pipeline, pair.a);
                const Correction result = corrector.correct(config);
                EXPECT_TRUE(result.remaining.empty() && has_code(result.config, arch)) << kernel_name(config);
                EXPECT_EQ(result.config.pipeline, pipeline) << kernel_name(config);
                EXPECT_EQ(result.config.dtype, pair.a) << kernel_name(config);
                EXPECT_EQ(result.config.math, Math::strict) << kernel_name(config);
                const bool is_any = result.config.layout == Layout::any && pipeline == Pipeline::preshuffle;
                EXPECT_TRUE(result.config.layout == Layout::rcr || is_any) << kernel_name(result.config);
            }
        }
    }
}

// A warpgroup takes fp32 as tf32 alone, so nobody gets less than was asked for.
TEST(Corrector, NeverTakesALesserMathClass) {
    const ArchSpec& arch = arch_named("sm_90a");
    const Correction result = Corrector(arch).correct(original_default(arch, Pipeline::compv6, DType::fp32));
    EXPECT_EQ(result.config.math, Math::strict);
    EXPECT_NE(result.config.pipeline, Pipeline::compv6);
}

}  // namespace
}  // namespace tilewise
