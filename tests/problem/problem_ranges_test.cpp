// SPDX-License-Identifier: MIT
#include "problem/problem_ranges.hpp"

#include <gtest/gtest.h>

namespace tilewise {
namespace {

using Texts = std::vector<std::string>;

TEST(ProblemRanges, StandForEveryCombination) {
    EXPECT_EQ(*expand_ranges("gemm:m=64:256*2,n=8,k=4"),
              (Texts{"gemm:m=64,n=8,k=4", "gemm:m=128,n=8,k=4", "gemm:m=256,n=8,k=4"}));
    EXPECT_EQ(*expand_ranges("gemm:m=1:5+2,n=3:9*3"),
              (Texts{"gemm:m=1,n=3", "gemm:m=1,n=9", "gemm:m=3,n=3", "gemm:m=3,n=9", "gemm:m=5,n=3", "gemm:m=5,n=9"}));
    EXPECT_EQ(*expand_ranges("gemm:m=64:4096*2")->rbegin(), "gemm:m=4096");
    EXPECT_EQ(expand_ranges("gemm:m=9000000000000000000:9223372036854775807*2")->size(), 1U);
}

TEST(ProblemRanges, LeaveOtherTextsAlone) {
    for (const char* text : {"gemm:m=1,n=2", "conv_fwd:pad=1:0x2:1,in=8x8", "{\"op\": \"gemm\", \"m\": 1}", "", "gemm",
                             "gemm:m=1,epilogue=bias+gelu", "gemm:"}) {
        EXPECT_EQ(*expand_ranges(text), Texts{text}) << text;
    }
}

TEST(ProblemRanges, ThatMakeNoSenseAreNamed) {
    for (const char* text : {"64:256*1", "64:32*2", "0:8*2", "1:9+0", "a:9*2", "1:9*", "1:99999999+1", "-4:8+1"}) {
        const auto texts = expand_ranges(std::string("gemm:n=2,m=") + text);
        ASSERT_FALSE(texts.ok()) << text;
        EXPECT_NE(texts.error().message.find(text), std::string::npos) << texts.error().message;
    }
    EXPECT_FALSE(expand_ranges("gemm:m=1:999+1,n=1:999+1").ok()) << "a million problems";
}

}  // namespace
}  // namespace tilewise
