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

TEST(OperandSpecs, Json) {
    const auto problem = parse_problem("gemm:m=2,n=3,k=5,dtype=fp32");
    const std::string text = operands_to_json(operand_specs(*problem)).dump();
    EXPECT_EQ(text.find(R"([{"name":"a","dtype":"fp32","shape":[2,5],"strides":[5,1]})"), 0u) << text;
}

}  // namespace
}  // namespace tilewise
