// SPDX-License-Identifier: MIT
// How much scratch memory a kernel asks for.
#include "config/workspace.hpp"

#include <gtest/gtest.h>

#include "config/archs.hpp"
#include "config/fit.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

std::int64_t bytes_for(std::string_view text, const KernelConfig& config, std::string_view arch = "gfx942") {
    const auto problem = parse_problem(text);
    EXPECT_TRUE(problem.ok()) << problem.error().message;
    return workspace_bytes(ProblemView(*problem), config, arch_named(arch));
}

constexpr std::string_view kDeepGemm = "gemm:m=100,n=60,k=4096,dtype=bf16";
constexpr std::string_view kDeepWeight = "conv_bwd_weight:n=2,g=2,c=8,k=4,in=5x5,filter=3x3,pad=1,dtype=bf16";

TEST(Workspace, APlainKernelNeedsNone) {
    KernelConfig c;
    EXPECT_EQ(bytes_for(kDeepGemm, c), 0);
    c.op = Op::conv_bwd_weight;
    EXPECT_EQ(bytes_for(kDeepWeight, c), 0);
}

TEST(Workspace, PartialSumsAreFourBytesEach) {
    KernelConfig c;
    c.split_k = 3;
    EXPECT_EQ(bytes_for(kDeepGemm, c), 3 * 100 * 60 * 4) << "one partial output per part";
    c.deterministic = false;
    EXPECT_EQ(bytes_for(kDeepGemm, c), 100 * 60 * 4) << "atomics share one";
    c = {};
    c.op = Op::conv_bwd_weight;
    c.two_stage = true;
    EXPECT_EQ(bytes_for(kDeepWeight, c), 4 * 4 * 9 * 4) << "the weight gradient in fp32";
}

TEST(Workspace, StreamKHoldsATilePerBlock) {
    KernelConfig c;
    c.tile = {128, 64, 32};
    c.blocks_per_unit = 2;
    c.stream_k = StreamK::tree;
    constexpr std::int64_t kFlags = 16;
    const std::int64_t blocks = std::int64_t{arch_named("gfx942").units} * 2;
    for (const StreamK how : {StreamK::linear, StreamK::tree, StreamK::atomic}) {
        c.stream_k = how;
        EXPECT_EQ(bytes_for(kDeepGemm, c), blocks * (128 * 64 * 4 + kFlags));
    }
}

TEST(Workspace, ExplicitGemmHoldsTheIm2colMatrix) {
    KernelConfig c;
    c.explicit_gemm = true;
    c.dtype = DType::bf16;
    c.op = Op::conv_bwd_weight;
    // For each of 2x5x5 output positions, 3x3 taps of all 8 channels, 2 bytes each.
    EXPECT_EQ(bytes_for(kDeepWeight, c), 2 * 25 * 9 * 8 * 2);
    c.op = Op::conv_fwd;
    EXPECT_EQ(bytes_for("conv_fwd:n=2,g=2,c=8,k=4,in=5x5,filter=3x3,pad=1,dtype=bf16", c), 2 * 25 * 9 * 8 * 2);
}

// Sizes that no memory holds must come out as too much, not wrap round to something that fits.
TEST(Workspace, ColumnsAreSumsOfEveryTap) {
    constexpr std::string_view kData = "conv_bwd_data:n=2,c=3,k=64,in=5x5,filter=3x3,stride=2,pad=1,dtype=bf16";
    KernelConfig c;
    c.op = Op::conv_bwd_data, c.gather = Gather::columns;
    EXPECT_EQ(bytes_for(kData, c, "sm_90a"), 2 * 3 * 3 * 9 * 3 * 4) << "pixels of dy, taps, channels";
    c.split_k = 4;
    EXPECT_EQ(bytes_for(kData, c, "sm_90a"), 4 * 2 * 3 * 3 * 9 * 3 * 4);
}

TEST(Workspace, DoesNotWrapRound) {
    KernelConfig split;
    split.split_k = 65536;
    split.tile = {128, 128, 1};
    KernelConfig explicit_gemm;
    explicit_gemm.op = Op::conv_fwd;
    explicit_gemm.explicit_gemm = true;
    explicit_gemm.dtype = DType::fp32;
    KernelConfig weight = explicit_gemm;
    weight.op = Op::conv_bwd_weight;
    constexpr std::int64_t kMost = std::int64_t{1} << 50;
    EXPECT_GT(bytes_for("gemm:m=16777216,n=16777216,k=16777216,dtype=fp32", split), kMost);
    EXPECT_GT(bytes_for("conv_fwd:n=1,c=1,k=1,in=140737488355328,filter=1048576,dtype=fp32", explicit_gemm), kMost);
    EXPECT_GT(bytes_for("conv_fwd:n=1,c=1,k=1,in=140737488355328,filter=16777216,dtype=fp32", explicit_gemm), kMost);
    EXPECT_GT(bytes_for("conv_bwd_weight:n=1,c=1,k=1,in=140737488355328,filter=16777216,dtype=fp32", weight), kMost);
}

}  // namespace
}  // namespace tilewise
