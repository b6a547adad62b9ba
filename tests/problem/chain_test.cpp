// SPDX-License-Identifier: MIT
#include "problem/chain.hpp"

#include <gtest/gtest.h>

#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

TEST(Chain, IsThatOfItsProblem) {
    const Problem p = *parse_problem("gemm:m=8,n=8,k=8,dtype=bf16,epilogue=bias+add+relu,d=mul,beta=1,scale=row");
    const Chain chain = chain_of(p);
    EXPECT_EQ(chain, (Chain{true, Scale::row, {EpilogueOp::bias, EpilogueOp::add, EpilogueOp::relu, EpilogueOp::mul}}));
    EXPECT_EQ(print_chain(chain), "scale_row+beta+bias+add+relu+mul");
    EXPECT_FALSE(chain.is_plain());
    EXPECT_TRUE(chain_of(*parse_problem("gemm:m=8,n=8,k=8,dtype=bf16")).is_plain());
}

TEST(Chain, IsReadAsItIsPrinted) {
    for (const char* text : {"none", "bias", "bias+gelu", "add", "bias+add+relu", "beta", "scale_tensor+beta+silu"}) {
        const auto chain = parse_chain(text);
        ASSERT_TRUE(chain.ok()) << text;
        EXPECT_EQ(print_chain(*chain), text);
    }
}

TEST(Chain, RefusesWordsAndChainsThatNoProblemHas) {
    EXPECT_NE(parse_chain("bias+gelo").error().message.find("gelo"), std::string::npos);
    EXPECT_NE(parse_chain("bias+bias").error().message.find("bias at most once"), std::string::npos);
    EXPECT_NE(parse_chain("add+add+mul+mul+add").error().message.find("at most 4"), std::string::npos);
    EXPECT_FALSE(parse_chain("").ok());
}

// D tensors that come last have a field of their own, whichever way they were given.
TEST(Chain, OfOneMeaningIsPrintedInOneWay) {
    const Problem one = *parse_problem("gemm:m=8,n=8,k=8,dtype=fp32,epilogue=relu+add+mul");
    const Problem two = *parse_problem("gemm:m=8,n=8,k=8,dtype=fp32,d=add+mul,epilogue=relu");
    EXPECT_EQ(one, two);
    EXPECT_EQ(print_problem(one), "gemm:m=8,n=8,k=8,dtype=fp32,layout=rcr,epilogue=relu,d=add+mul");
    const Problem three = *parse_problem("gemm:m=8,n=8,k=8,dtype=fp32,epilogue=bias+add+relu");
    EXPECT_EQ(print_problem(three), "gemm:m=8,n=8,k=8,dtype=fp32,layout=rcr,epilogue=bias+add+relu");
}

}  // namespace
}  // namespace tilewise
