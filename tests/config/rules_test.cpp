// SPDX-License-Identifier: MIT
// For every rule, a valid config and the change that breaks it.
#include "config/rules.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <set>

#include "config/archs.hpp"

namespace tilewise {
namespace {

constexpr std::string_view kGemm =
    "gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128x64_2x2x1_32x32x16_va8_vb8_vc8@gfx942";
constexpr std::string_view kConv =
    "grouped_conv_fwd_bf16_nhwgc_2d_compv3_cshuffle_intrawave_128x128x32_2x2x1_32x32x16_va8_vb8_vc8@gfx942";
constexpr std::string_view kWeight =
    "grouped_conv_bwd_weight_bf16_nhwgc_2d_mem_cshuffle_intrawave_64x64x32_2x2x1_16x16x16_va8_vb8_vc8@gfx942";
constexpr std::string_view kPreshuffle =
    "gemm_bf16_rcr_preshuffle_cshuffle_intrawave_128x128x64_2x2x1_32x32x16_va8_vb8_vc8_dsb@gfx942";
constexpr std::string_view kCpu = "gemm_fp32_any_compv3_default_intrawave_48x128x128_1x1x1_6x16x1@cpu-avx2";
constexpr std::string_view kEight = "gemm_bf16_rcr_mem_cshuffle_intrawave_256x256x64_4x4x1_32x32x16_va8_vb8_vc8@gfx950";
constexpr std::string_view kHopper =
    "gemm_fp8_rcr_compv3_cshuffle_intrawave_128x128x128_2x1x1_64x128x32_va16_vb16_vc8@sm_90a";
constexpr std::string_view kAmpere = "gemm_fp32_rcr_compv3_cshuffle_intrawave_64x64x16_2x2x1_32x32x1_va4_vb4_vc4@sm_80";

constexpr std::string_view kCudaConv =
    "grouped_conv_fwd_bf16_nhwgc_2d_comp_async_cshuffle_intrawave_64x64x32_2x2x1_16x8x16_va8_vb8_vc8_dsb_stages6_"
    "gather-async@sm_80";

struct Broken {
    std::string_view rule;
    std::string_view base;
    std::function<void(KernelConfig&)> change;
    bool alone = true;  // whether the change breaks this rule and no other
};
constexpr bool kAmongOthers = false;

const std::vector<Broken>& broken_configs() {
    static const std::vector<Broken> cases = {
        {"arch", kGemm, [](KernelConfig& c) { c.arch = "gfx90a"; }},
        {"dimensions", kGemm, [](KernelConfig& c) { c.ndim = 2; }, kAmongOthers},
        {"dimensions", kConv, [](KernelConfig& c) { c.ndim = 4; }, kAmongOthers},
        {"layout", kConv, [](KernelConfig& c) { c.layout = Layout::nwgc; }},
        {"layout", kGemm, [](KernelConfig& c) { c.layout = Layout::nhwgc; }, kAmongOthers},
        {"field_scope", kGemm, [](KernelConfig& c) { c.two_stage = true; }, kAmongOthers},
        {"dtype_pair", kGemm, [](KernelConfig& c) { c.dtype_b = DType::fp16; }},
        {"dtype_output", kGemm, [](KernelConfig& c) { c.dtype_out = DType::int32; }, kAmongOthers},
        {"dtype_accumulator", kGemm, [](KernelConfig& c) { c.dtype_acc = DType::bf16; }},
        {"int8_forward_only", kWeight,
         [](KernelConfig& c) {
             c.dtype = c.dtype_b = DType::int8;
             c.dtype_out = c.dtype_acc = DType::int32;
         },
         kAmongOthers},
        {"math_dtype", kGemm, [](KernelConfig& c) { c.math = Math::tf32; }},
        {"math_dtype", kGemm, [](KernelConfig& c) { c.math = Math::fast; }},
        {"positive", kGemm, [](KernelConfig& c) { c.split_k = 0; }},
        {"positive", kGemm,
         [](KernelConfig& c) {
             c.tile = {0, 0, 0};
         },
         kAmongOthers},
        {"wave_listed", kGemm,
         [](KernelConfig& c) {
             c.wave = {4, 2, 1};
         }},
        {"warp_tile_listed", kGemm,
         [](KernelConfig& c) {
             c.warp_tile = {32, 32, 4};
         }},
        {"tile_multiple", kGemm, [](KernelConfig& c) { c.tile.n = 96; }},
        {"threads", kGemm,
         [](KernelConfig& c) {
             c.wave = {4, 4, 2};
         },
         kAmongOthers},
        {"accumulators", kGemm,
         [](KernelConfig& c) {
             c.tile = {256, 128, 64};
             c.wave = {1, 1, 1};
         }},
        {"tile_minimum", kPreshuffle, [](KernelConfig& c) { c.tile.k = 16; }},
        {"tile_alignment", kGemm, [](KernelConfig& c) { c.tile.k = 68; }, kAmongOthers},
        {"pipeline", kConv, [](KernelConfig& c) { c.pipeline = Pipeline::preshuffle; }, kAmongOthers},
        {"pipeline", kCpu, [](KernelConfig& c) { c.pipeline = Pipeline::comp_async; }},
        {"scheduler", kGemm, [](KernelConfig& c) { c.scheduler = Scheduler::interwave; }},
        {"interwave", kHopper, [](KernelConfig& c) { c.scheduler = Scheduler::interwave; }},
        {"interwave", kCpu, [](KernelConfig& c) { c.scheduler = Scheduler::interwave; }},
        {"double_buffer", kGemm, [](KernelConfig& c) { c.pipeline = Pipeline::compv4; }},
        {"stages", kGemm, [](KernelConfig& c) { c.stages = 2; }, kAmongOthers},
        {"stages", kHopper, [](KernelConfig& c) { c.stages = 2; }},
        {"producers", kHopper, [](KernelConfig& c) { c.producer_waves = 1; }},
        {"gather", kCudaConv, [](KernelConfig& c) { c.gather = Gather::plain; }},
        {"preshuffle_layout", kPreshuffle, [](KernelConfig& c) { c.layout = Layout::rrr; }},
        {"epilogue", kCpu, [](KernelConfig& c) { c.epilogue = Epilogue::cshuffle; }},
        {"shared_memory", kGemm, [](KernelConfig& c) { c.blocks_per_unit = 3; }},
        {"vector_width", kGemm, [](KernelConfig& c) { c.vector_a = 16; }},
        {"vector_width", kGemm, [](KernelConfig& c) { c.vector_c = 0; }},
        {"vector_divides_tile", kHopper, [](KernelConfig& c) { c.tile.n = 132; }, kAmongOthers},
        {"vector_any_layout", kGemm, [](KernelConfig& c) { c.layout = Layout::any; }},
        {"option", kGemm, [](KernelConfig& c) { c.swap_ab = true; }},
        {"stream_or_split", kGemm,
         [](KernelConfig& c) {
             c.stream_k = StreamK::tree;
             c.split_k = 2;
         }},
        {"deterministic", kGemm, [](KernelConfig& c) { c.deterministic = false; }},
        {"deterministic", kGemm, [](KernelConfig& c) { c.stream_k = StreamK::atomic; }},
        {"cluster", kHopper,
         [](KernelConfig& c) {
             c.cluster = {3, 1};
         }},
        {"cluster", kHopper,
         [](KernelConfig& c) {
             c.cluster = {4, 4};
         }},
        {"cluster", kHopper, [](KernelConfig& c) { c.cluster_k = true; }},
        {"cluster", kHopper,
         [](KernelConfig& c) {
             c.cluster_k = true;
             c.split_k = 9;
         }},
        {"groups_to_merge", kConv, [](KernelConfig& c) { c.num_groups_to_merge = 3; }},
        {"groups_to_merge", kConv, [](KernelConfig& c) { c.num_groups_to_merge = 64; }},
        {"compile_time_rank", kConv, [](KernelConfig& c) { c.ct_stride = filled(3, 1); }},
        {"specialization_filter", kConv,
         [](KernelConfig& c) {
             c.specialization = Specialization::filter_1x1;
             c.ct_filter = filled(2, 3);
         }},
        {"option_conflict", kWeight,
         [](KernelConfig& c) {
             c.explicit_gemm = true;
             c.num_groups_to_merge = 2;
         }},
        {"name_length", kWeight,
         [](KernelConfig& c) {
             c.ct_filter = c.ct_stride = c.ct_dilation = filled(2, 10000);
             c.two_stage = c.split_image = c.persistent = true;
             c.raster = Raster::hilbert;
             c.raster_group = 8;
         }},
        {"cshuffle_odd_repeat", kGemm, [](KernelConfig& c) { c.tile.m = 192; }},
        {"bwd_weight_interwave", kWeight, [](KernelConfig& c) { c.scheduler = Scheduler::interwave; }},
        {"async_wave_shape", kGemm, [](KernelConfig& c) { c.pipeline = Pipeline::basic_async_v1; }},
        {"compv6_loads", kGemm,
         [](KernelConfig& c) {
             c.pipeline = Pipeline::compv6;
             c.double_smem_buffer = true;
             c.tile = {64, 64, 16};
         }},
        {"compv3_eight_waves", kEight, [](KernelConfig& c) { c.pipeline = Pipeline::compv3; }},
        {"tf32_instruction", kAmpere,
         [](KernelConfig& c) {
             c.warp_tile = {16, 8, 8};
         }},
        {"wide_wave_k_major", kHopper, [](KernelConfig& c) { c.layout = Layout::rrr; }},
        {"wide_wave_lines", kHopper,
         [](KernelConfig& c) {
             c.dtype = c.dtype_b = DType::bf16;
             c.layout = Layout::rrr;
             c.vector_a = c.vector_b = 8;
             c.tile = {128, 32, 64};
             c.warp_tile = {64, 32, 16};
         }},
        {"wide_wave_turns", kHopper,
         [](KernelConfig& c) {
             c.pipeline = Pipeline::compv5;
             c.stages = 2;
             c.producer_waves = 1;
             c.tile.m = 64;
             c.wave = {1, 1, 1};
         }},
        {"preshuffle_thread_map", kPreshuffle,
         [](KernelConfig& c) {
             c.wave = {4, 1, 1};
             c.warp_tile = {16, 16, 16};
             c.tile = {64, 64, 64};
         }},
    };
    return cases;
}

KernelConfig config_named(std::string_view name) {
    auto config = parse_kernel_name(name);
    EXPECT_TRUE(config.ok()) << config.error().message;
    return *config;
}

TEST(Rules, EachIsBrokenByItsExample) {
    for (const Broken& broken : broken_configs()) {
        const KernelConfig base = config_named(broken.base);
        const ArchSpec& arch = arch_named(base.arch);
        for (const Rejected& why : check_config(base, arch)) {
            ADD_FAILURE() << "not valid to begin with: " << broken.base << "\n" << why.rule << ": " << why.have;
        }
        KernelConfig config = base;
        broken.change(config);
        const auto violations = check_config(config, arch);
        bool found = false;
        for (const Rejected& why : violations) {
            found |= why.rule == broken.rule;
            EXPECT_FALSE(why.have.empty()) << why.rule;
            EXPECT_FALSE(why.need.empty()) << why.rule;
            if (broken.alone) {
                EXPECT_EQ(why.rule, broken.rule) << kernel_name(config) << "\n" << why.have << "; " << why.need;
            }
        }
        EXPECT_TRUE(found) << broken.rule << " is not broken by " << kernel_name(config);
        EXPECT_FALSE(is_valid(config, arch)) << broken.rule;
    }
}

TEST(Rules, EachHasAnExampleANameAndAReason) {
    std::set<std::string_view> covered, names;
    for (const Broken& broken : broken_configs()) covered.insert(broken.rule);
    for (const ConfigRule& rule : config_rules()) {
        EXPECT_TRUE(covered.contains(rule.name)) << "add a broken config for rule " << rule.name;
        EXPECT_TRUE(names.insert(rule.name).second) << rule.name << " twice";
        EXPECT_FALSE(rule.reason.empty()) << rule.name;
        EXPECT_EQ(find_config_rule(rule.name), &rule);
    }
    for (const std::string_view rule : covered) EXPECT_TRUE(names.contains(rule)) << "no rule " << rule;
    EXPECT_EQ(find_config_rule("no_such_rule"), nullptr);
}

TEST(Rules, AKnownBadRuleHoldsWhereTheArchNamesIt) {
    for (const Broken& broken : broken_configs()) {
        if (!find_config_rule(broken.rule)->known_bad || !broken.alone) continue;
        KernelConfig config = config_named(broken.base);
        broken.change(config);
        ArchSpec arch = arch_named(config.arch);
        EXPECT_FALSE(is_valid(config, arch));
        std::erase(arch.known_bad, broken.rule);
        EXPECT_TRUE(is_valid(config, arch)) << broken.rule;
    }
}

TEST(Rules, ACorrectionMendsItsOwnExample) {
    for (const Broken& broken : broken_configs()) {
        KernelConfig config = config_named(broken.base);
        const ArchSpec& arch = arch_named(config.arch);
        broken.change(config);
        const Correction result = correct_config(config, arch);
        bool remains = false;
        for (const Rejected& why : result.remaining) remains |= why.rule == broken.rule;
        if (!broken.alone) continue;
        EXPECT_EQ(remains, find_config_rule(broken.rule)->correct == nullptr)
            << broken.rule << ": " << kernel_name(result.config);
    }
}

// Numbers that a reader can act on.
TEST(Rules, HaveAndNeedAreConcrete) {
    const auto violation = [](std::string_view base, const std::function<void(KernelConfig&)>& change) {
        KernelConfig config = config_named(base);
        const ArchSpec& arch = arch_named(config.arch);
        change(config);
        const auto violations = check_config(config, arch);
        return violations.empty() ? Rejected{} : violations.front();
    };
    EXPECT_EQ(
        violation(kGemm, [](KernelConfig& c) { c.tile.k = 256; }),
        (Rejected{"shared_memory", "131072 bytes: 1 buffers of tile 128x128x256, 1 blocks per unit", "at most 65536"}));
    EXPECT_EQ(
        violation(kGemm, [](KernelConfig& c) { c.tile.n = 96; }),
        (Rejected{"tile_multiple", "tile 128x96x64 with wave 2x2x1 x warp tile 32x32x16", "a multiple of 64x64x16"}));
    EXPECT_EQ(violation(kGemm, [](KernelConfig& c) { c.vector_a = 16; }),
              (Rejected{"vector_width", "vector_a 16", "a power of two up to 8 (16 bytes of bf16)"}));
    EXPECT_EQ(violation(kGemm, [](KernelConfig& c) { c.pipeline = Pipeline::compv4; }),
              (Rejected{"double_buffer", "compv4 with double_smem_buffer=false", "double_smem_buffer=true"}));
}

// A config is only text until it is checked; no text may crash the checker. Run apart, for a crash ends a process.
TEST(RulesDeathTest, ExtremeShapesAreRefusedWithoutACrash) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    for (const char* name : {"gemm_bf16_rcr_compv3_cshuffle_intrawave_0x0x0_65536x65536x1_65536x65536x1@gfx942",
                             "gemm_bf16_rcr_preshuffle_default_intrawave_0x0x0_65536x1x1_65536x1x1_dsb@gfx942",
                             "gemm_bf16_rcr_compv6_default_intrawave_0x0x0_0x0x0_0x0x0_va0_vb0_vc0@gfx950",
                             "gemm_bf16_rcr_compv3_cshuffle_intrawave_65536x65536x65536_1x1x1_1x1x1_bpu65536@sm_90a"}) {
        EXPECT_EXIT(
            {
                const KernelConfig config = config_named(name);
                const ArchSpec& arch = arch_named(config.arch);
                const bool refused = !check_config(config, arch).empty() && !is_valid(config, arch);
                (void)correct_config(config, arch);
                std::_Exit(refused ? 0 : 3);
            },
            testing::ExitedWithCode(0), "")
            << name;
    }
}

}  // namespace
}  // namespace tilewise
