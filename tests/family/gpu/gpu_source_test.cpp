// SPDX-License-Identifier: MIT
// The text of generated GPU sources, word for word, and that every available config's source can be made.
#include "family/gpu/gpu_source.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/files.hpp"
#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "config/family_id.hpp"
#include "config/rule_set.hpp"
#include "config/rules.hpp"
#include "config/workspace.hpp"
#include "family/family.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

struct Golden {
    const char* file;
    const char* kernel;
};

// Warpgroup kernels, general ones and a plain fp32 one. TILEWISE_WRITE_GOLDEN=1 writes the files after a wanted change.
constexpr Golden kGolden[] = {
    {"wgmma.txt",
     "gemm_bf16_rcr_compv6_cshuffle_intrawave_128x256x64_2x1x1_64x256x16_va8_vb8_vc8_stages4_pers_cluster2x1_pw1@sm_"
     "90a"},
    {"wgmma_cluster_k.txt",
     "gemm_bf16_rcr_compv6_cshuffle_intrawave_64x16x64_1x1x1_64x16x16_va8_vb8_vc8_stages4_splitk4_clusterk_swap_pw1@sm_"
     "90a"},
    {"mma.txt", "gemm_fp16_rrc_compv3_default_intrawave_64x64x32_2x2x1_16x8x16@sm_80"},
    {"wgmma_int8.txt",
     "gemm_int8_rcr_compv6_cshuffle_intrawave_128x128x128_2x1x1_64x128x32_va16_vb16_vc4_stages6_pers_pw1@sm_90a"},
    {"mma_tf32.txt",
     "gemm_fp32_rcr_comp_async_cshuffle_intrawave_64x64x16_2x2x1_16x8x8_math-tf32x3_va4_vb4_vc4_dsb_stages4@sm_80"},
    {"simt.txt", "gemm_fp32_crr_compv4_cshuffle_intrawave_64x64x16_2x1x1_32x64x1_va4_vb4_vc4_dsb@sm_90a"},
    {"fp64.txt", "gemm_fp32_rcr_comp_async_cshuffle_intrawave_128x64x32_2x2x1_16x8x1_va4_vb4_vc4_dsb_stages3@sm_90a"},
    {"gemv.txt", "gemm_bf16_rcr_compv3_default_intrawave_16x4x512_1x1x8_16x4x1_va8_vb8_pers_swap_bpu2@sm_90a"},
    {"gemv_rows.txt",
     "gemm_bf16_rrr_compv3_default_intrawave_128x4x128_1x1x8_16x4x1_va8_vb8_splitk8_clusterk_swap_bpu2@sm_90a"},
    {"wgmma_shared_unit.txt",
     "gemm_bf16_rcr_compv6_cshuffle_intrawave_64x32x64_1x1x1_64x32x16_va8_vb8_vc8_stages9_pw1_bpu2@sm_90a"},
    {"mma_conv.txt",
     "grouped_conv_bwd_data_bf16_nhwgc_2d_comp_async_cshuffle_intrawave_64x64x32_2x2x1_16x8x16_va8_vb8_vc8_dsb_"
     "stages8_gather-async@sm_90a"},
    {"im2col_conv.txt",
     "grouped_conv_fwd_bf16_nhwgc_2d_compv6_cshuffle_intrawave_128x256x64_2x1x1_64x256x16_va8_vb8_vc8_stages4_pers_"
     "gather-tensor_pw1@sm_90a"},
    {"col2im_conv.txt",
     "grouped_conv_bwd_data_bf16_nhwgc_2d_comp_async_default_intrawave_64x64x64_2x2x1_16x8x16_va8_vb2_dsb_stages4_"
     "gather-columns@sm_90a"},
};

TEST(CudaSource, IsWrittenAsItWas) {
    for (const auto& [file, kernel] : kGolden) {
        SCOPED_TRACE(kernel);
        const KernelConfig config = parse_kernel_name(kernel).value();
        const auto source = generate_source(config, **embedded_archs().find(config.arch));
        ASSERT_TRUE(source.ok()) << source.error().message;
        const std::string path = std::string(TILEWISE_SOURCE_DIR) + "/tests/golden/sources/" + file;
        if (std::getenv("TILEWISE_WRITE_GOLDEN")) {
            ASSERT_TRUE(write_file(path, source->text).ok());
        }
        EXPECT_EQ(source->text, read_file(path).value());
    }
}

TEST(CudaSource, LaunchFieldsDoNotChangeIt) {
    KernelConfig config = parse_kernel_name(kGolden[0].kernel).value();
    const ArchSpec& arch = **embedded_archs().find(config.arch);
    const std::string before = generate_source(config, arch)->text;
    config.split_k = 4;
    config.raster = Raster::n;
    config.raster_group = 5;
    EXPECT_EQ(generate_source(config, arch)->text, before);
}

TEST(CudaSource, EveryAvailableConfigHasOne) {
    for (const char* name : {"sm_80", "sm_90a"}) {
        const ArchSpec& arch = **embedded_archs().find(name);
        for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32, DType::fp8, DType::int8}) {
            if (!arch.find_warp_tiles({dtype, dtype})) continue;
            int available = 0;
            const auto configs = expand(arch, Op::gemm, {dtype, dtype}, RuleSet::full, std::nullopt);
            ASSERT_TRUE(configs.ok());
            for (const KernelConfig& config : *configs) {
                const auto source = generate_source(config, arch);
                EXPECT_EQ(source.ok(), has_code(config, arch)) << kernel_name(config);
                available += source.ok() ? 1 : 0;
            }
            EXPECT_GT(available, 100) << name << ' ' << name_of(dtype);
        }
    }
}

TEST(CudaSource, NumbersThatNoKernelHasHaveNone) {
    for (const std::string_view name : {"gemm_fp32_rcr_compv3_default_intrawave_64x64x8_2x2x0_32x64x1@sm_90a",
                                        "gemm_fp32_rcr_compv3_default_intrawave_65536x65536x65536_1x1x65536_16x16x1_"
                                        "stages65536@sm_90a",
                                        "gemm_bf16_rcr_compv6_cshuffle_intrawave_0x0x0_0x0x0_64x0x0@sm_90a"}) {
        EXPECT_FALSE(has_code(parse_kernel_name(name).value(), arch_named("sm_90a"))) << name;
    }
}

// Results leave a warp by the columns of its part of the tile, here 8 of 32.
TEST(CudaSource, VectorsOfResultsFitTheColumnsOfAWarp) {
    constexpr std::string_view kName =
        "gemm_fp32_rcr_comp_async_cshuffle_intrawave_64x32x32_1x4x1_16x8x1_out-fp8_va4_vb4_vc8_dsb_stages4@sm_90a";
    KernelConfig config = parse_kernel_name(kName).value();
    EXPECT_TRUE(has_code(config, arch_named("sm_90a")));
    config.vector_c = 16;
    EXPECT_FALSE(has_code(config, arch_named("sm_90a")));
}

// What is launched afterwards must be there; what never is would only take the compiler's time.
TEST(CudaSource, KernelsThatLeavePartsHaveTheirSecondKernel) {
    const ArchSpec& arch = **embedded_archs().find("sm_90a");
    int leaving = 0, keeping = 0;
    for (const Op op : {Op::gemm, Op::conv_fwd, Op::conv_bwd_data, Op::conv_bwd_weight}) {
        const auto configs = expand(arch, op, {DType::bf16, DType::bf16}, RuleSet::standard, std::nullopt);
        ASSERT_TRUE(configs.ok());
        for (const KernelConfig& config : *configs) {
            const bool own = config.gather == Gather::halo;  // in its template
            if (!has_code(config, arch) || own) continue;
            const bool has = generate_source(config, arch)->text.find("TILEWISE_GPU_REDUCE") != std::string::npos;
            if (sums_in_workspace(config)) {
                ++leaving;
                EXPECT_TRUE(has) << kernel_name(config);
            }
            if (config.cluster_k || config.stream_k != StreamK::off) {
                ++keeping;
                EXPECT_FALSE(has) << kernel_name(config);
            }
        }
    }
    EXPECT_GT(leaving, 100);
    EXPECT_GT(keeping, 100);
}

// The matrix unit of a warpgroup takes fp32 as tf32, along the reduction: of convolutions, forward.
TEST(CudaSource, WarpgroupsConvolveFp32AsTf32Forward) {
    const ArchSpec& arch = arch_named("sm_90a");
    const char* const kName =
        "grouped_conv_{}_fp32_nhwgc_2d_{}_cshuffle_intrawave_128x64x32_2x1x1_64x64x8_math-tf32_va4_vb4_vc4_stages8_"
        "pers_"
        "gather-tensor_pw1@sm_90a";
    for (const char* pipeline : {"compv5", "compv6"}) {
        const auto forward = parse_kernel_name(fmt::format(fmt::runtime(kName), "fwd", pipeline));
        ASSERT_TRUE(forward.ok());
        EXPECT_TRUE(is_valid(*forward, arch) && has_code(*forward, arch)) << pipeline;
        for (const char* direction : {"bwd_data", "bwd_weight"}) {
            const auto backward = parse_kernel_name(fmt::format(fmt::runtime(kName), direction, pipeline));
            ASSERT_TRUE(backward.ok());
            EXPECT_FALSE(is_valid(*backward, arch) && has_code(*backward, arch)) << direction;
        }
    }
}

}  // namespace
}  // namespace tilewise
