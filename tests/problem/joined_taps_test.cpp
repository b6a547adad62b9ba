// SPDX-License-Identifier: MIT
#include "problem/joined_taps.hpp"

#include <gtest/gtest.h>

#include <string>

#include "measure/operand_plan.hpp"
#include "problem/facts.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

Problem problem(const std::string& text) {
    return parse_problem(text.find("dtype=") == std::string::npos ? text + ",dtype=fp32" : text).value();
}
std::string joined(const std::string& text) {
    const auto other = with_joined_taps(problem(text));
    return other ? print_problem(*other) : "";
}
std::string plain(const std::string& text) { return print_problem(problem(text)); }

TEST(JoinedTaps, MakeChannelsOfColumnsAndImagesOfRows) {
    for (const std::string op : {"conv_fwd", "conv_bwd_data", "conv_bwd_weight"}) {
        EXPECT_EQ(joined(op + ":n=64,c=3,k=768,in=224x224,filter=16x16,stride=16x16,dtype=bf16"),
                  plain(op + ":n=896,c=48,k=768,in=16x14,filter=16x1,dtype=bf16"));
        EXPECT_EQ(joined(op + ":n=2,c=5,k=8,in=12,filter=4,stride=4,layout=nwgc"),
                  plain(op + ":n=2,c=20,k=8,in=3,filter=1,layout=nwgc"));
        EXPECT_EQ(joined(op + ":n=2,c=2,k=8,in=4x6x6,filter=2x3x3,stride=2x3x3,layout=ndhwgc"),
                  plain(op + ":n=4,c=6,k=8,in=2x6x2,filter=2x3x1,stride=1x3x1,layout=ndhwgc"));
    }
}

TEST(JoinedTaps, JoinEachDimensionByItself) {
    EXPECT_EQ(joined("conv_fwd:n=2,c=3,k=8,in=9x8,filter=2x4,stride=2x4"),
              plain("conv_fwd:n=2,c=12,k=8,in=9x2,filter=2x1,stride=2x1"))
        << "a row is left over";
    EXPECT_EQ(joined("conv_fwd:n=2,c=3,k=8,in=8x9,filter=2x4,stride=2x4"),
              plain("conv_fwd:n=8,c=3,k=8,in=2x9,filter=2x4,stride=1x4"))
        << "a column is left over";
    EXPECT_EQ(joined("conv_fwd:n=2,g=2,c=6,k=8,in=8x8,filter=4x4,stride=4x4"),
              plain("conv_fwd:n=4,g=2,c=6,k=8,in=4x8,filter=4x4,stride=1x4"))
        << "channels of groups lie between those of neighbours";
    EXPECT_EQ(joined("conv_bwd_data:n=2,c=3,k=8,in=8x8,filter=4x4,stride=4x4,epilogue=bias"),
              plain("conv_bwd_data:n=4,c=3,k=8,in=4x8,filter=4x4,stride=1x4,epilogue=bias"))
        << "a bias has an element for each channel";
}

TEST(JoinedTaps, LeaveOtherConvolutionsAlone) {
    for (const char* text :
         {"gemm:m=4,n=4,k=4", "conv_fwd:n=2,c=3,k=8,in=8x8,filter=3x3,stride=2x2",
          "conv_fwd:n=2,c=3,k=8,in=8x8,filter=1x1", "conv_fwd:n=2,c=3,k=8,in=8x8,filter=4x4,stride=4x4,layout=ngchw",
          "conv_fwd:n=2,c=3,k=8,in=8x8,filter=4x4,stride=4x4,pad=4x4",
          "conv_fwd:n=2,c=3,k=8,in=8x8,filter=2x2,stride=2x2,dilation=2x2",
          "conv_fwd:n=2,c=3,k=8,in=8x8,filter=4x4,stride=4x4,packed_b=1"}) {
        EXPECT_EQ(joined(text), "") << text;
    }
}

TEST(JoinedTaps, KeepTheWorkAndTheMemory) {
    const Problem given = problem("conv_fwd:n=3,c=3,k=8,in=32x48,filter=8x8,stride=8x8");
    const Problem other = with_joined_taps(given).value();
    EXPECT_EQ(flops(other), flops(given));
    for (int operand = 0; operand < 3; ++operand) {
        EXPECT_EQ(stored_rows(other, operand).span(), stored_rows(given, operand).span()) << operand;
    }
}

}  // namespace
}  // namespace tilewise
