// SPDX-License-Identifier: MIT
#include "problem/operand_specs.hpp"

#include <gtest/gtest.h>

#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

std::string operands(std::string_view text) {
    const auto problem = parse_problem(text);
    EXPECT_TRUE(problem.ok()) << text;
    std::string out;
    for (const OperandSpec& spec : operand_specs(*problem)) {
        out += spec.name + ":" + std::string(name_of(spec.dtype));
        for (const auto size : spec.shape) out += " " + std::to_string(size);
        out += " /";
        for (const auto stride : spec.strides) out += " " + std::to_string(stride);
        out += "\n";
    }
    return out;
}

TEST(OperandSpecs, LettersSayHowAMatrixIsStored) {
    EXPECT_EQ(operands("gemm:m=2,n=3,k=5,dtype=fp32,layout=rrr"),
              "a:fp32 2 5 / 5 1\nb:fp32 5 3 / 3 1\nc:fp32 2 3 / 3 1\n");
    EXPECT_EQ(operands("gemm:m=2,n=3,k=5,dtype=fp32,layout=ccc"),
              "a:fp32 5 2 / 2 1\nb:fp32 3 5 / 5 1\nc:fp32 3 2 / 2 1\n");
}

TEST(OperandSpecs, BatchesAndStrides) {
    EXPECT_EQ(operands("gemm:m=2,n=3,k=5,dtype=fp32,layout=rcr,batch=4,lda=6,batch_stride_b=0,ldc=7,batch_stride_c=99"),
              "a:fp32 4 2 5 / 12 6 1\nb:fp32 3 5 / 5 1\nc:fp32 4 2 3 / 99 7 1\n");
}

TEST(OperandSpecs, OnlyWhatTheProblemHas) {
    EXPECT_EQ(operands("gemm:m=2,n=3,k=5,dtype=fp8,b=bf8,out=bf16,epilogue=bias+relu,d=add+mul,scale=row"),
              "a:fp8 2 5 / 5 1\nb:bf8 3 5 / 5 1\nc:bf16 2 3 / 3 1\nbias:bf16 3 / 1\nd0:bf16 2 3 / 3 1\n"
              "d1:bf16 2 3 / 3 1\nscale_a:fp32 2 / 1\nscale_b:fp32 3 / 1\n");
    EXPECT_NE(operands("gemm:m=2,n=3,k=5,dtype=fp32,scale=tensor").find("scale_a:fp32 1 / 1\nscale_b:fp32 1 / 1\n"),
              std::string::npos);
}

TEST(OperandSpecs, ConvolutionsAreXWAndYInTheOrderOfTheirDirection) {
    const std::string x = "fp32 2 9 7 3 4 / 756 84 12 4 1\n", w = "fp32 3 2 5 1 4 / 40 20 4 4 1\n",
                      y = "fp32 2 5 7 3 2 / 210 42 6 2 1\n";
    const std::string rest = ":n=2,g=3,c=12,k=6,in=9x7,filter=5x1,dtype=fp32";
    EXPECT_EQ(operands("conv_fwd" + rest), "a:" + x + "b:" + w + "c:" + y);
    EXPECT_EQ(operands("conv_bwd_data" + rest), "a:" + y + "b:" + w + "c:" + x);
    EXPECT_EQ(operands("conv_bwd_weight" + rest), "a:" + y + "b:" + x + "c:" + w);
}

TEST(OperandSpecs, ChannelsFirstAndWhatIsFused) {
    const std::string rest = ":n=2,g=3,c=12,k=6,in=9,filter=3,dtype=bf16,layout=ngcw,epilogue=bias,d=add,scale=tensor";
    EXPECT_EQ(operands("conv_fwd" + rest),
              "a:bf16 2 3 4 9 / 108 36 9 1\nb:bf16 3 2 3 4 / 24 12 4 1\nc:bf16 2 3 2 7 / 42 14 7 1\n"
              "bias:bf16 6 / 1\nd0:bf16 2 3 2 7 / 42 14 7 1\nscale_a:fp32 1 / 1\nscale_b:fp32 1 / 1\n");
    EXPECT_NE(operands("conv_bwd_data" + rest).find("bias:bf16 12 / 1\nd0:bf16 2 3 4 9 /"), std::string::npos);
}

TEST(OperandSpecs, Json) {
    const auto problem = parse_problem("gemm:m=2,n=3,k=5,dtype=fp32");
    const std::string text = operands_to_json(operand_specs(*problem)).dump();
    EXPECT_EQ(text.find(R"([{"name":"a","dtype":"fp32","shape":[2,5],"strides":[5,1]})"), 0u) << text;
}

}  // namespace
}  // namespace tilewise
