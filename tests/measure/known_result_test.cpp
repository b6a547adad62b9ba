// SPDX-License-Identifier: MIT
#include "measure/known_result.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "measure/float_gemm.hpp"

namespace tilewise {
namespace {

FloatGemm plainly(const Tensors& tensors) {
    FloatGemm how;
    how.alpha = suggested_alpha(tensors.problem());
    how.beta = tensors.problem().beta ? 0.5f : 0.0f;
    return how;
}

TEST(KnownResult, AgreesWithOtherOrdersOfAddingUpAndWithNothingElse) {
    for (const char* text :
         {"gemm:m=33,n=40,k=300,layout=rcr", "gemm:m=20,n=31,k=257,layout=rrr,dtype=bf16,epilogue=bias",
          "gemm:m=16,n=24,k=64,layout=ccr,dtype=int8", "gemm:m=16,n=24,k=99,layout=rcr,beta=1,batch=2",
          "gemm:m=9,n=17,k=500,layout=rcr,dtype=fp16,epilogue=bias+gelu"}) {
        Tensors tensors = tensors_for(text, 3);
        FloatGemm how = plainly(tensors);
        run_float_gemm(tensors, how);
        ASSERT_TRUE(verify_result(tensors, how.alpha, how.beta).ok) << text;
        const KnownResult known(tensors, how.alpha, how.beta);
        EXPECT_EQ(known.compare(tensors).max_error, 0);

        how.split_k = 4;
        tensors.reset_output();
        run_float_gemm(tensors, how);
        const VerifyReport same = known.compare(tensors);
        EXPECT_TRUE(same.ok) << text << ": " << describe(same);
        EXPECT_EQ(same.checked, tensors.problem().gemm.batch * tensors.problem().gemm.m * tensors.problem().gemm.n);

        how.dropped = 1;
        tensors.reset_output();
        run_float_gemm(tensors, how);
        EXPECT_FALSE(known.compare(tensors).ok) << text << ": a product is missing";
    }
}

TEST(KnownResult, FindsWhatWasNotWrittenAndWhatWasWrittenElsewhere) {
    Tensors tensors = tensors_for("gemm:m=12,n=10,k=30,layout=rcr,ldc=16");
    const FloatGemm how = plainly(tensors);
    run_float_gemm(tensors, how);
    const KnownResult known(tensors, how.alpha, how.beta);
    tensors.reset_output();
    const VerifyReport unwritten = known.compare(tensors);
    EXPECT_FALSE(unwritten.ok);
    ASSERT_TRUE(unwritten.failure);
    EXPECT_TRUE(unwritten.failure->unwritten);
    run_float_gemm(tensors, how);
    std::memset(tensors.c().at(0, 0, 10), 0, 4);  // between rows
    const VerifyReport stray = known.compare(tensors);
    EXPECT_FALSE(stray.ok);
    EXPECT_FALSE(stray.guards.empty());
}

}  // namespace
}  // namespace tilewise
