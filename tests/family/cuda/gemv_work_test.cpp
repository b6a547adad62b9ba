// SPDX-License-Identifier: MIT
// The model of GPU GEMMs ranks kernels for vectors whose large operand lies along its lines by how many units read.
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

}  // namespace
}  // namespace tilewise
