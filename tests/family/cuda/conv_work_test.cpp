// SPDX-License-Identifier: MIT
// Every CUDA convolution kernel of the default set has a prediction: a time, never less than memory allows, and
// not less for twice the images.
#include <gtest/gtest.h>

#include <cmath>

#include "config/archs.hpp"
#include "config/rule_set.hpp"
#include "family/family.hpp"
#include "family/may_run.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

constexpr const char* kLayers[] = {
    "n=8,g=1,c=64,k=64,in=28x28,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc",
    "n=8,g=1,c=256,k=512,in=14x14,filter=1x1,dtype=bf16,layout=nhwgc",
    "n=8,g=1,c=128,k=96,in=28x28,filter=3x3,stride=2x2,pad=1x1,dtype=bf16,layout=nhwgc",
    "n=8,g=1,c=3,k=64,in=56x56,filter=7x7,stride=2x2,pad=3x3,dtype=bf16,layout=nhwgc",
    "n=8,g=32,c=256,k=256,in=28x28,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc",
    "n=8,g=7,c=728,k=728,in=14x14,filter=3x3,stride=2x2,pad=1x1,dtype=bf16,layout=nhwgc",
    "n=8,g=96,c=96,k=96,in=56x56,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc",
    "n=8,g=96,c=96,k=96,in=28x28,filter=7x7,pad=3x3,dtype=bf16,layout=nhwgc",
    "n=8,g=64,c=64,k=64,in=28x28,filter=3x3,stride=2x2,pad=1x1,dtype=bf16,layout=nhwgc",
    "n=2,g=64,c=64,k=64,in=8x14x14,filter=3x3x3,pad=1x1x1,dtype=bf16,layout=ndhwgc",
};
constexpr const char* kDirections[] = {"conv_fwd:", "conv_bwd_data:", "conv_bwd_weight:"};

TEST(CudaConvWork, IsBoundedByMemoryAndGrowsWithTheImages) {
    const ArchSpec& arch = arch_named("sm_90a");
    int predicted = 0;
    for (const char* direction : kDirections) {
        const Op op = parse_problem(std::string(direction) + kLayers[0])->op;
        const auto configs = expand(arch, op, {DType::bf16, DType::bf16}, RuleSet::standard);
        ASSERT_TRUE(configs.ok()) << configs.error().message;
        for (const char* layer : kLayers) {
            const Problem one = *parse_problem(std::string(direction) + layer);
            Problem more = one;
            more.conv.n *= 16;
            const WorkProblem own(one, arch, 1), larger(more, arch, 1);
            for (const KernelConfig& c : *configs) {
                if (!may_run(own.view, c, arch) || !may_run(larger.view, c, arch)) continue;
                const double us = predicted_us(own, c), more_us = predicted_us(larger, c);
                ASSERT_TRUE(std::isfinite(us) && std::isfinite(more_us)) << kernel_name(c) << " " << print_problem(one);
                // The arch file's figure is a little less than what kernels have been seen to reach.
                constexpr double kReached = 1.0 / 1.05;
                ASSERT_GT(more_us, kReached * bytes_moved(more) / (arch.memory_gbps * 1e3))
                    << kernel_name(c) << " " << print_problem(more);
                ASSERT_GE(more_us, us) << kernel_name(c) << " " << print_problem(one);
                ++predicted;
            }
        }
    }
    EXPECT_GT(predicted, 500);
}

// Tiles wider than the layer are no faster for it.
TEST(CudaConvWork, ChargesForColumnsThatAreNotThere) {
    const ArchSpec& arch = arch_named("sm_90a");
    const auto us = [&](int k, const char* tile) {
        const auto c = parse_kernel_name("grouped_conv_fwd_bf16_nhwgc_2d_compv6_cshuffle_intrawave_" +
                                         std::string(tile) + "_va8_vb8_vc8_stages6_pers_gather-tensor_pw1@sm_90a");
        EXPECT_TRUE(c.ok()) << c.error().message;
        const Problem p = *parse_problem("conv_fwd:n=64,g=1,c=64,k=" + std::to_string(k) +
                                         ",in=56x56,filter=3x3,pad=1x1,dtype=bf16,layout=nhwgc");
        return predicted_us(WorkProblem(p, arch, 1), *c);
    };
    EXPECT_GT(us(64, "128x128x64_2x1x1_64x128x16"), us(128, "128x128x64_2x1x1_64x128x16") * 0.99);
    EXPECT_GT(us(64, "128x128x64_2x1x1_64x128x16"), us(64, "128x64x64_2x1x1_64x64x16"));
}

}  // namespace
}  // namespace tilewise
