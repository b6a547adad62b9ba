// SPDX-License-Identifier: MIT
// The model of GPU GEMMs ranks kernels for vectors whose large operand lies along its lines by how many units read, and others by what
// of a step has no elements; reads that are not whole accesses cost more.
#include <gtest/gtest.h>

#include "config/archs.hpp"
#include "config/config_name.hpp"
#include "family/family.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

class GemvRowsWork : public ::testing::Test {
protected:
    double us(const char* problem, int parts) const {
        KernelConfig c = parse_kernel_name(
                             "gemm_bf16_rrr_compv3_default_intrawave_128x4x128_1x1x8_16x4x1_va8_vb8_splitk2_clusterk_"
                             "swap_bpu2@sm_90a")
                             .value();
        c.split_k = parts;
        c.cluster_k = parts > 1;
        const Problem p = parse_problem(problem).value();
        return predicted_us(WorkProblem(p, **embedded_archs().find("sm_90a"), 1), c);
    }
};

TEST_F(GemvRowsWork, FewTilesAreBetterCutAlongK) {
    const char* few = "gemm:m=1,n=4096,k=4096,dtype=bf16,layout=rrr";  // 32 tiles for 132 units
    EXPECT_LT(us(few, 4), us(few, 1));
    EXPECT_LT(us(few, 4), us(few, 2));
}

TEST_F(GemvRowsWork, ManyTilesAreNot) {
    const char* many = "gemm:m=1,n=131072,k=4096,dtype=bf16,layout=rrr";
    EXPECT_LT(us(many, 1), us(many, 8));
}

TEST_F(GemvRowsWork, NothingIsReadFasterThanMemoryGives) {
    const ArchSpec& arch = **embedded_archs().find("sm_90a");
    EXPECT_GT(us("gemm:m=1,n=28672,k=4096,dtype=bf16,layout=rrr", 1), 28672.0 * 4096 * 2 / (arch.memory_gbps * 1e3));
}

double us_of(const char* name, const char* problem) {
    const KernelConfig c = parse_kernel_name(name).value();
    const Problem p = parse_problem(problem).value();
    return predicted_us(WorkProblem(p, **embedded_archs().find("sm_90a"), 1), c);
}

TEST(GemvWork, ReadsFromAnywhereCostMore) {
    const char* problem = "gemm:m=30960,n=4,k=1904,dtype=bf16,layout=rcr";
    const double whole =
        us_of("gemm_bf16_rcr_compv3_default_intrawave_16x4x512_1x1x8_16x4x1_va8_vb8_pers_bpu2@sm_90a", problem);
    const double by_element =
        us_of("gemm_bf16_rcr_compv3_default_intrawave_16x4x512_1x1x8_16x4x1_va8_pers_bpu2@sm_90a", problem);
    const double anywhere =
        us_of("gemm_bf16_rcr_compv3_default_intrawave_16x4x512_1x1x8_16x4x1_pers_bpu2@sm_90a", problem);
    EXPECT_LT(whole, by_element);
    EXPECT_LT(by_element, anywhere);
}

TEST(GemvWork, ShortLinesAreForManyWarpsAlongM) {
    const auto faster = [](const char* problem) {
        return us_of("gemm_bf16_rcr_compv3_default_intrawave_128x4x64_8x1x1_16x4x1_va8_vb8_pers_bpu2@sm_90a", problem) <
               us_of("gemm_bf16_rcr_compv3_default_intrawave_16x4x512_1x1x8_16x4x1_va8_vb8_pers_bpu2@sm_90a", problem);
    };
    EXPECT_TRUE(faster("gemm:m=77849,n=3,k=72,dtype=bf16,layout=rcr"));
    EXPECT_FALSE(faster("gemm:m=131072,n=1,k=4096,dtype=bf16,layout=rcr"));
    EXPECT_FALSE(faster("gemm:m=4096,n=1,k=4096,dtype=bf16,layout=rcr"));
    EXPECT_FALSE(faster("gemm:m=2000,n=4,k=4000,dtype=bf16,layout=rcr"));
}

}  // namespace
}  // namespace tilewise
