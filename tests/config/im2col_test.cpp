// SPDX-License-Identifier: MIT
// When groups are a dimension of pixels to the copy engine: channels that end inside a line, in numbers that it can count to.
#include "config/im2col.hpp"

#include <gtest/gtest.h>

#include "config/config_name.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

bool apart(const std::string& problem, int tile_k = 64) {
    KernelConfig config;
    const Problem p = parse_problem(problem).value();
    config.op = p.op, config.gather = Gather::tensor, config.dtype = config.dtype_b = DType::bf16;
    config.tile = {128, 128, tile_k};
    return gathers_groups_apart(p, config);
}

TEST(Im2col, GroupsThatEndInsideALineAreApart) {
    EXPECT_TRUE(apart("conv_fwd:n=1,g=10,c=800,k=640,in=9x9,filter=3x3,dtype=bf16,layout=nhwgc"));
    EXPECT_TRUE(apart("conv_fwd:n=1,g=2,c=16,k=640,in=9x9,filter=3x3,dtype=bf16,layout=nhwgc"));
    EXPECT_TRUE(apart("conv_fwd:n=1,g=100,c=800,k=800,in=99,filter=3,dtype=bf16,layout=nwgc"));
    EXPECT_TRUE(apart("conv_bwd_data:n=1,g=10,c=640,k=800,in=9x9,filter=3x3,dtype=bf16,layout=nhwgc"));
    EXPECT_TRUE(apart("conv_bwd_weight:n=1,g=10,c=800,k=640,in=9x9,filter=3x3,dtype=bf16,layout=nhwgc"));
}

TEST(Im2col, OthersAreNot) {
    EXPECT_FALSE(apart("conv_fwd:n=1,g=10,c=640,k=800,in=9x9,filter=3x3,dtype=bf16,layout=nhwgc")) << "whole lines";
    EXPECT_FALSE(apart("conv_bwd_data:n=1,g=10,c=800,k=640,in=9x9,filter=3x3,dtype=bf16,layout=nhwgc")) << "of dy";
    EXPECT_FALSE(apart("conv_fwd:n=1,g=2,c=64,k=64,in=9x9,filter=3x3,dtype=bf16,layout=nhwgc", 32)) << "short lines";
    EXPECT_FALSE(apart("conv_fwd:n=1,g=1,c=80,k=80,in=9x9,filter=3x3,dtype=bf16,layout=nhwgc")) << "one group";
}

TEST(Im2col, TheCopyEngineMustCountThem) {
    EXPECT_TRUE(apart("conv_fwd:n=1,g=17,c=408,k=408,in=9x9,filter=3x3,dtype=bf16,layout=nhwgc"));
    EXPECT_FALSE(apart("conv_fwd:n=1,g=18,c=432,k=432,in=9x9,filter=3x3,dtype=bf16,layout=nhwgc")) << "groups";
    EXPECT_FALSE(apart("conv_fwd:n=1,g=2,c=48,k=48,in=9x9x9,filter=3x3x3,dtype=bf16,layout=ndhwgc")) << "dimensions";
    EXPECT_FALSE(apart("conv_fwd:n=1,g=2,c=48,k=48,in=9x9,filter=3x3,pad=17x17,dtype=bf16,layout=nhwgc")) << "pixels";
}

}  // namespace
}  // namespace tilewise
