// SPDX-License-Identifier: MIT
// Every family's work: the tree gives the predicted time, and can be told.
#include <gtest/gtest.h>

#include <set>

#include "config/archs.hpp"
#include "config/price_names.hpp"
#include "config/rule_set.hpp"
#include "family/family.hpp"
#include "family/may_run.hpp"
#include "family/work_text.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

constexpr const char* kProblems[] = {
    "gemm:m=4096,n=1024,k=512,dtype=bf16,layout=rcr",
    "gemm:m=333,n=777,k=555,dtype=fp32,layout=rrr",
    "gemm:m=1,n=4096,k=4096,dtype=bf16,layout=rcr",
    "gemm:m=1,n=4096,k=4096,dtype=bf16,layout=rrr",
    "conv_fwd:n=8,g=1,c=64,k=64,in=28x28,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc",
    "conv_fwd:n=8,g=1,c=3,k=64,in=56x56,filter=7x7,stride=2x2,pad=3x3,dtype=bf16,layout=nhwgc",
    "conv_bwd_data:n=8,g=32,c=256,k=256,in=28x28,filter=3x3,stride=2x2,pad=1x1,dtype=bf16,layout=nhwgc",
    "conv_bwd_weight:n=8,g=1,c=64,k=64,in=28x28,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc",
    "conv_fwd:n=8,g=96,c=96,k=96,in=28x28,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc",
    "conv_bwd_weight:n=8,g=96,c=96,k=96,in=28x28,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc",
    "conv_fwd:n=4,g=1,c=64,k=64,in=28x28,filter=3x3,pad=1x1,dtype=fp32,layout=nhwgc",
};

TEST(FamilyWork, TheTreeGivesThePredictedTime) {
    std::set<const Family*> met;
    for (const char* name : {"cpu-avx512", "cpu-amx", "sm_80", "sm_90a", "gfx942"}) {
        const ArchSpec& arch = arch_named(name);
        for (const char* text : kProblems) {
            const Problem problem = *parse_problem(text);
            const WorkProblem own(problem, arch, 2);
            const auto configs = expand(arch, problem.op, {problem.dtype_a, problem.dtype_b}, RuleSet::standard);
            ASSERT_TRUE(configs.ok());
            for (const KernelConfig& config : *configs) {
                if (!has_code(config, arch) || !may_run(own.view, config, arch)) continue;
                const double us = predicted_us(own, config);
                const Work work = work_of(own, config);
                ASSERT_NEAR(evaluate(work), us, 1e-9 * us) << kernel_name(config) << " " << text;
                if (!met.insert(find_family(config, arch)).second) continue;
                ASSERT_FALSE(work_lines(work, arch).empty());
                for (const WorkNode& node : work.nodes) {
                    ASSERT_TRUE(!node.price || price_name(arch, node.price) != "") << kernel_name(config);
                }
            }
        }
    }
    EXPECT_GE(met.size(), families().size() - 2) << "problems for every family";
}

std::string told(const char* kernel, const char* text) {
    const auto config = parse_kernel_name(kernel);
    EXPECT_TRUE(config.ok()) << config.error().message;
    const ArchSpec& arch = arch_named(config->arch);
    const Problem problem = *parse_problem(text);
    std::string all;
    for (const WorkLine& line : work_lines(work_of(WorkProblem(problem, arch, 1), *config), arch)) {
        char value[32];
        std::snprintf(value, sizeof value, "%.4g", line.value);
        all += std::string(static_cast<std::size_t>(2 * line.depth), ' ') + line.name + " " + value + " = " +
               line.formula + "\n";
    }
    return all;
}

TEST(FamilyWork, AGemmIsTold) {
    EXPECT_EQ(
        told("gemm_bf16_rcr_compv3_default_intrawave_128x4x128_1x1x8_16x4x1_va8_vb8_swap_bpu2@sm_90a",
             "gemm:m=1,n=4096,k=4096,dtype=bf16,layout=rcr"),
        R"(time 14.02 = soft_max(gemv.sharpness 4.3; compute, memory) + passes + gemv.fill_us 0.37 + peaks.launch_us 2.1
  compute 4.513 = elements 127100 * (gemv.conversion_operations 3 + gemv.vector_operations 2) / gemv.operations_per_us 1.408e+05
  memory 11.35 = 3.35708e+07 / (peaks.memory_gbps 4270 * gemv.memory_reached_share 0.98 * 1000) * gathered 1.41421
  passes 0.15 = gemv.pass_us 0.15
)");
}

TEST(FamilyWork, AConvolutionIsTold) {
    EXPECT_EQ(
        told("grouped_conv_fwd_bf16_nhwgc_2d_compv6_cshuffle_intrawave_128x128x64_2x1x1_64x128x16_va8_vb8_vc8_stages6_"
             "pers_gather-tensor_pw1@sm_90a",
             "conv_fwd:n=64,g=1,c=64,k=128,in=56x56,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc"),
        R"(time 58.55 = soft_max(im2col_conv.memory_sharpness 2.05; tiles, memory) + im2col_conv.fill_us 3.16
  tiles 52.92 = rounds 12 * (stage * steps 9 + ending) / clock.cycles_per_us 1700
    stage 618 = soft_max(im2col_conv.sharpness 2.66; products, shared memory, cache, copies)
      products 405.2 = 2.09715e+06 / (peaks.tflops.bf16 790 * 1e+06 / (clock.cycles_per_us 1700 * 132)) / im2col_conv.reached_share 1.47 * multiplied 1
      shared memory 361.6 = 81920 / (128 * im2col_conv.shared_reached_share 1.77)
      cache 338.1 = 32768 / (peaks.cache_gbps 1.215e+04 * 1000 / (clock.cycles_per_us 1700 * 132) * im2col_conv.cache_reached_share 1.79)
      copies 357.6 = pixels + rows
        pixels 275.2 = 128 * im2col_conv.pixel_cycles 2.15
        rows 82.43 = 128 * im2col_conv.row_cycles 0.644
    ending 1934 = im2col_conv.start_cycles 1300 + results
      results 634.1 = 16384 * im2col_conv.result_cycles 0.0387
  memory 17.06 = 7.72178e+07 / (peaks.memory_gbps 4270 * im2col_conv.memory_reached_share 1.06 * 1000)
)");
}

}  // namespace
}  // namespace tilewise
