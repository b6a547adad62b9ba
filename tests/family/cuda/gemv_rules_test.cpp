// SPDX-License-Identifier: MIT
// Which vector widths kernels for a few vectors have, by layout, type and operand, and why others are refused.
#include <gtest/gtest.h>

#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "config/family_id.hpp"
#include "family/family.hpp"

namespace tilewise {
namespace {

struct Asked {
    std::string_view name;
    FamilyId family;
    std::string_view have, need;  // empty where there is code
};

TEST(GemvRules, TellWhichVectorsThereAre) {
    constexpr FamilyId kAlong = FamilyId::gemv, kAcross = FamilyId::gemv_rows;
    const Asked list[] = {
        {"gemm_bf16_rcr_compv3_default_intrawave_16x4x512_1x1x8_16x4x1_va8_vb8_pers@sm_90a", kAlong, "", ""},
        {"gemm_bf16_rcr_compv3_default_intrawave_16x4x512_1x1x8_16x4x1_vb8_pers@sm_90a", kAlong, "", ""},
        {"gemm_bf16_rrr_compv3_default_intrawave_16x4x512_1x1x8_16x4x1_va8_pers@sm_90a", kAlong, "", ""},
        {"gemm_bf16_ccr_compv3_default_intrawave_128x4x64_8x1x1_16x4x1_pers_swap@sm_90a", kAlong, "", ""},
        {"gemm_bf16_crr_compv3_default_intrawave_128x4x128_1x1x8_16x4x1_va8@sm_90a", kAcross, "", ""},
        {"gemm_bf16_crr_compv3_default_intrawave_128x4x64_1x1x8_16x4x1_swap@sm_90a", kAcross, "", ""},
        {"gemm_fp32_crr_compv3_default_intrawave_64x4x64_1x1x8_16x4x1_va4@sm_90a", kAcross, "", ""},
        {"gemm_bf16_rrr_compv3_default_intrawave_16x4x512_1x1x8_16x4x1_va8_vb8_pers@sm_90a", kAlong, "vector_b 8",
         "1, across k"},
        {"gemm_bf16_rcr_compv3_default_intrawave_16x4x512_1x1x8_16x4x1_va4_vb8_pers@sm_90a", kAlong, "vector_a 4",
         "8 or 1"},
        {"gemm_bf16_crr_compv3_default_intrawave_128x4x128_1x1x8_16x4x1@sm_90a", kAcross, "tile 128x4x128", "128x4x64"},
        {"gemm_fp32_rcr_compv3_default_intrawave_16x4x256_1x1x8_16x4x1_vb4_pers@sm_90a", kAlong, "vector_a 1", "4"},
        {"gemm_int8_rrr_compv3_default_intrawave_16x4x1024_1x1x8_16x4x1_va16_pers@sm_90a", kAlong, "vector_b 1",
         "vectors that lie along k, or elements of 16 or 32 bits"},
    };
    for (const Asked& asked : list) {
        const auto config = parse_kernel_name(asked.name);
        ASSERT_TRUE(config.ok()) << asked.name;
        EXPECT_EQ(family_of(*config), asked.family) << asked.name;
        Rejected why;
        EXPECT_EQ(has_code(*config, arch_named("sm_90a"), &why), asked.need.empty()) << asked.name << " " << why.need;
        EXPECT_EQ(why.have, asked.have) << asked.name;
        EXPECT_EQ(why.need, asked.need) << asked.name;
    }
}

}  // namespace
}  // namespace tilewise
