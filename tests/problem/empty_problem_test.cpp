// SPDX-License-Identifier: MIT
#include "problem/empty_problem.hpp"

#include <gtest/gtest.h>

#include "problem/facts.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

struct EmptyCase {
    const char* text;
    bool result, sums;
    const char* stand_in;
};

TEST(EmptyProblem, HasAStandInThatIsPossible) {
    const EmptyCase cases[] = {
        {"gemm:m=0,n=8,k=4,dtype=fp32", true, false, "gemm:m=1,n=8,k=4,dtype=fp32,layout=rcr"},
        {"gemm:m=3,n=0,k=0,dtype=fp32,packed_b=1", true, false, "gemm:m=3,n=1,k=16,dtype=fp32,layout=rcr"},
        {"gemm:m=3,n=5,k=0,dtype=bf16,ldc=9,beta=1", false, true,
         "gemm:m=3,n=5,k=16,dtype=bf16,layout=rcr,ldc=9,beta=1"},
        {"gemm:m=3,n=5,k=4,batch=0,dtype=fp32", true, false, "gemm:m=3,n=5,k=4,dtype=fp32,layout=rcr"},
        {"conv_fwd:n=0,c=4,k=4,in=8,filter=3,dtype=fp32", true, false,
         "conv_fwd:n=1,g=1,c=4,k=4,in=8,filter=3,stride=1,pad=0,dilation=1,dtype=fp32,layout=nwgc"},
        {"conv_bwd_weight:n=0,c=4,k=4,in=8,filter=3,dtype=fp32", false, true,
         "conv_bwd_weight:n=1,g=1,c=4,k=4,in=8,filter=3,stride=1,pad=0,dilation=1,dtype=fp32,layout=nwgc"},
    };
    for (const EmptyCase& c : cases) {
        const auto problem = read_problem(c.text);
        ASSERT_TRUE(problem.ok()) << problem.error().message;
        EXPECT_TRUE(is_empty(*problem)) << c.text;
        EXPECT_EQ(has_empty_result(*problem), c.result) << c.text;
        EXPECT_EQ(has_empty_sums(*problem), c.sums) << c.text;
        Problem full = stand_in(*problem);
        EXPECT_FALSE(check_problem(full).has_value()) << c.text;
        EXPECT_FALSE(is_empty(full)) << c.text;
        full.gemm.batch_stride = {kPacked, kPacked, kPacked};  // one zero serves the whole batch
        EXPECT_EQ(print_problem(full), c.stand_in);
    }
    EXPECT_FALSE(is_empty(*read_problem("gemm:m=1,n=1,k=1,dtype=fp32")));
}

}  // namespace
}  // namespace tilewise
