// SPDX-License-Identifier: MIT
// The judge is judged: right results of all kinds pass, and a right result that is then broken in any of the ways
// kernels go wrong does not, whichever method looks at it.
#include "measure/verify.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "base/random.hpp"
#include "measure/float_gemm.hpp"
#include "measure/projection.hpp"
#include "measure/reference.hpp"

namespace tilewise {
namespace {

// Makes any problem a large one.
VerifyOptions as_large() {
    VerifyOptions options;
    options.full_work = 0;
    return options;
}

TEST(Verify, RightResultsPass) {
    Random random(11);
    const std::vector<std::string> layouts = {"rcr", "rrr", "crr", "ccr", "rcc", "rrc", "crc", "ccc"};
    const std::vector<std::string> dtypes = {
        "fp32",          "fp16", "bf16",          "fp8",           "bf8,out=fp32", "fp8,b=bf8,out=bf8",
        "fp16,out=fp32", "int8", "int8,out=int8", "int8,out=fp16", "int8,out=fp32"};
    const std::vector<std::string> extras = {"",
                                             ",beta=1",
                                             ",scale=tensor",
                                             ",scale=row,epilogue=bias",
                                             ",d=add+mul",
                                             ",epilogue=bias+relu",
                                             ",d=add,beta=1",
                                             ",batch=3,batch_stride_a=0",
                                             ",batch=2,lda=90,ldb=95,ldc=91",
                                             ",epilogue=bias+gelu,d=mul,beta=1,scale=row",
                                             ",align=1"};
    for (int i = 0; i < 300; ++i) {
        const std::string shape = "m=" + std::to_string(random.between(1, 70)) +
                                  ",n=" + std::to_string(random.between(1, 70)) +
                                  ",k=" + std::to_string(random.between(1, 90));
        const std::string text =
            "gemm:" + shape + ",layout=" + random.pick(layouts) + ",dtype=" + random.pick(dtypes) + random.pick(extras);
        const Tensors t = tensors_for(text, random.bits());
        FloatGemm how;
        how.alpha = random.chance(50) ? suggested_alpha(t.problem()) : -0.7f * suggested_alpha(t.problem());
        how.beta = t.problem().beta ? 1.25f : 0;
        run_float_gemm(t, how);
        const VerifyReport small = verify_result(t, how.alpha, how.beta);
        EXPECT_TRUE(small.ok) << text << ": " << describe(small);
        EXPECT_EQ(small.method, VerifyMethod::every_element);
        EXPECT_EQ(small.checked, t.problem().gemm.batch * t.problem().gemm.m * t.problem().gemm.n);
        EXPECT_LE(small.max_ratio, 1);
        const VerifyReport large = verify_result(t, how.alpha, how.beta, as_large());
        EXPECT_TRUE(large.ok) << text << ": " << describe(large);
        EXPECT_NE(large.method, VerifyMethod::every_element);
    }
}

TEST(Verify, ARightResultAccusesNoRow) {
    for (const char* text : {"gemm:m=200,n=300,k=500", "gemm:m=200,n=300,k=500,dtype=bf16,epilogue=bias,d=add",
                             "gemm:m=200,n=300,k=500,dtype=fp8,scale=row", "gemm:m=200,n=300,k=500,dtype=int8",
                             "gemm:m=200,n=300,k=500,dtype=fp8,out=fp8"}) {
        const Tensors t = tensors_for(text);
        run_float_gemm(t);
        for (const std::int64_t width : {4, 16, 64, 512}) {
            EXPECT_TRUE(suspicious_rows(t, {}, width, 5).empty()) << text << ' ' << width;
        }
    }
}

struct Mutation {
    const char* name;
    std::function<void(Tensors&)> apply;
};

constexpr std::int64_t kM = 96, kN = 112, kK = 160, kBatch = 3;
constexpr std::int64_t kAt[] = {1, 57, 83};  // an element in the middle

void drop_tail(Tensors& t) {
    FloatGemm how;
    how.dropped = 1;
    run_float_gemm(t, how);
}

void transpose_block(Tensors& t) {
    for (std::int64_t i = 0; i < 16; ++i) {
        for (std::int64_t j = 0; j < i; ++j) {
            const double upper = element(t.c(), 2, 32 + j, 48 + i), lower = element(t.c(), 2, 32 + i, 48 + j);
            set_element(t.c(), 2, 32 + j, 48 + i, lower);
            set_element(t.c(), 2, 32 + i, 48 + j, upper);
        }
    }
}

void unwrite_corner(Tensors& t) {
    const std::uint32_t poison = poison_bits(t.c().type);
    const auto size = static_cast<std::size_t>(bytes_of(t.c().type));
    std::memcpy(t.c().at(kBatch - 1, kM - 1, kN - 1), &poison, size);
}

void swap_batches(Tensors& t) {
    for (std::int64_t i = 0; i < kM * kN; ++i) {
        const double one = element(t.c(), 1, i / kN, i % kN), two = element(t.c(), 2, i / kN, i % kN);
        set_element(t.c(), 1, i / kN, i % kN, two);
        set_element(t.c(), 2, i / kN, i % kN, one);
    }
}

// Beyond what is allowed for the element by a share of that: a hair where all are computed, more where they are
// projected.
void shift_element(Tensors& t, double tolerances) {
    const RowRef row = {kAt[0], kAt[1]};
    const Bounded x = reference_rows(t, {&row, 1}, {})[static_cast<std::size_t>(kAt[2])];
    const DType type = t.c().type;
    const double allowed = std::max(tolerance_of(type, x), unit_roundoff(type) * 2 * std::abs(x.value));
    const bool whole = type == DType::int32;
    const double shift = whole ? 1 : tolerances * allowed;
    set_element(t.c(), kAt[0], kAt[1], kAt[2], x.value + (x.value < 0 ? -shift : shift));
}

std::vector<Mutation> mutations(double shift) {
    return {
        {"one element off", [shift](Tensors& t) { shift_element(t, shift); }},
        {"last product of k missing", drop_tail},
        {"block transposed", transpose_block},
        {"NaN", [](Tensors& t) { set_element(t.c(), kAt[0], kAt[1], kAt[2], NAN); }},
        {"corner not written", unwrite_corner},
        {"guard overwritten",
         [](Tensors& t) { std::memset(static_cast<std::byte*>(t.c().at(kBatch - 1, kM - 1, kN - 1)) + 4, 0, 1); }},
        {"batch entries swapped", swap_batches},
        {"bias off by one",
         [](Tensors& t) {
             FloatGemm how;
             how.bias_shift = 1;
             run_float_gemm(t, how);
         }},
    };
}

std::string mutated_problem(const std::string& rest) {
    return "gemm:m=" + std::to_string(kM) + ",n=" + std::to_string(kN) + ",k=" + std::to_string(kK) +
           ",batch=" + std::to_string(kBatch) + ",epilogue=bias" + rest;
}

void expect_all_found(const std::string& text, const VerifyOptions& options, VerifyMethod method, double shift) {
    for (const Mutation& mutation : mutations(shift)) {
        Tensors t = tensors_for(text);
        if (t.problem().dtype_a == DType::int8 && std::string(mutation.name) == "NaN") continue;
        run_float_gemm(t);
        const VerifyReport before = verify_result(t, 1, 0, options);
        ASSERT_TRUE(before.ok) << text << ": " << describe(before);
        ASSERT_EQ(before.method, method);
        mutation.apply(t);
        const VerifyReport after = verify_result(t, 1, 0, options);
        EXPECT_FALSE(after.ok) << text << ", " << mutation.name << ": " << describe(after);
        const bool by_guard = std::string(mutation.name) == "guard overwritten";
        EXPECT_EQ(after.guards.empty(), !by_guard) << mutation.name;
        EXPECT_EQ(after.failure.has_value(), !by_guard) << mutation.name;
        if (!by_guard) {
            EXPECT_GT(after.max_ratio, 1) << mutation.name;
        }
    }
}

constexpr const char* kMutatedTypes[] = {
    ",dtype=fp32",         ",dtype=fp16", ",dtype=bf16,layout=ccc",     ",dtype=fp8,layout=rrr",
    ",dtype=bf8,out=bf16", ",dtype=int8", ",dtype=fp32,d=add,scale=row"};

TEST(Verify, EveryMutationOfASmallProblemIsFound) {
    for (const char* rest : kMutatedTypes) {
        expect_all_found(mutated_problem(rest), {}, VerifyMethod::every_element, 1.05);
    }
    for (const char* rest : {",dtype=fp32,d=mul", ",dtype=bf16,d=mul"}) {
        expect_all_found(mutated_problem(rest), {}, VerifyMethod::every_element, 1.05);
    }
    expect_all_found(mutated_problem("+relu,dtype=fp32"), {}, VerifyMethod::every_element, 1.05);
}

TEST(Verify, EveryMutationOfALargeProblemIsFound) {
    VerifyOptions options = as_large();
    options.sample_rows = 1;  // the projection must do it
    for (const char* rest : kMutatedTypes) {
        expect_all_found(mutated_problem(rest), options, VerifyMethod::projection_and_rows, 8);
    }
    options.project_work = 1e5;  // coarse: groups of 64 columns
    for (const char* rest : kMutatedTypes) {
        expect_all_found(mutated_problem(rest), options, VerifyMethod::projection_and_rows, 80);
    }
}

// With an activation only rows can be computed, but what is wrong in more than a few rows, or not finite, is seen.
TEST(Verify, WideMutationsUnderAnActivationAreFound) {
    VerifyOptions options = as_large();
    options.full_work = kN * kK * 40.0;
    for (const char* rest : {"+silu,dtype=fp32", "+tanh,dtype=bf16", ",d=mul,dtype=fp16"}) {
        for (const Mutation& mutation : mutations(2)) {
            if (std::string(mutation.name) == "one element off") continue;
            Tensors t = tensors_for(mutated_problem(rest));
            run_float_gemm(t);
            const VerifyReport before = verify_result(t, 1, 0, options);
            EXPECT_TRUE(before.ok) << describe(before);
            EXPECT_EQ(before.method, VerifyMethod::sampled_rows);
            mutation.apply(t);
            EXPECT_FALSE(verify_result(t, 1, 0, options).ok) << rest << ", " << mutation.name;
        }
    }
}

TEST(Verify, NamesTheFirstWrongElement) {
    const Tensors t = tensors_for("gemm:m=300,n=600,k=8,batch=2");
    run_float_gemm(t);
    set_element(t.c(), 1, 200, 1, 50);
    set_element(t.c(), 1, 140, 599, -50);
    set_element(t.c(), 1, 141, 2, 50);
    const VerifyReport report = verify_result(t, 1, 0);
    ASSERT_TRUE(report.failure);
    EXPECT_EQ(report.failed, 3);
    EXPECT_EQ(report.failure->batch, 1);
    EXPECT_EQ(report.failure->row, 140);
    EXPECT_EQ(report.failure->col, 599);
    EXPECT_EQ(report.failure->got, -50);
    EXPECT_NEAR(report.max_error, 50, 5);
    const std::string text = describe(report);
    EXPECT_EQ(text.find("wrong: batch 1, row 140, column 599: expected "), 0u) << text;
    EXPECT_NE(text.find("got -50; 3 wrong of 360000 elements checked one by one (every element)"), std::string::npos)
        << text;
}

TEST(Verify, SaysWhatWasNeverWritten) {
    for (const char* dtype : {"fp32", "bf16", "fp8,out=fp8", "int8"}) {
        const Tensors t = tensors_for(std::string("gemm:m=20,n=20,k=8,dtype=") + dtype);
        for (const VerifyOptions& options : {VerifyOptions{}, as_large()}) {
            const VerifyReport report = verify_result(t, 1, 0, options);
            ASSERT_TRUE(report.failure) << dtype;
            EXPECT_TRUE(report.failure->unwritten);
            EXPECT_NE(describe(report).find("never written"), std::string::npos);
        }
    }
}

TEST(Verify, NaNAndInfinityOfTheInputsMustArrive) {
    for (const VerifyOptions& options : {VerifyOptions{}, as_large()}) {
        Tensors t = tensors_for("gemm:m=40,n=40,k=40");
        set_element(t.a(), 0, 7, 3, NAN);
        set_element(t.a(), 0, 9, 3, INFINITY);
        t.seal_inputs();
        run_float_gemm(t);
        const VerifyReport right = verify_result(t, 1, 0, options);
        EXPECT_TRUE(right.ok) << describe(right);
        set_element(t.c(), 0, 7, 7, 1);
        EXPECT_FALSE(verify_result(t, 1, 0, options).ok);
        set_element(t.c(), 0, 7, 7, NAN);
        set_element(t.c(), 0, 9, 9, -element(t.c(), 0, 9, 9));
        EXPECT_FALSE(verify_result(t, 1, 0, options).ok);
    }
}

TEST(Verify, BetaIsJudgedByTheCThatWasThere) {
    Tensors t = tensors_for("gemm:m=40,n=40,k=40,beta=1");
    FloatGemm how;
    how.beta = 0.5f;
    run_float_gemm(t, how);
    EXPECT_TRUE(verify_result(t, 1, 0.5f).ok);
    EXPECT_TRUE(verify_result(t, 1, 0.5f, as_large()).ok);
    EXPECT_FALSE(verify_result(t, 1, 0.25f).ok);
    t.reset_output();
    EXPECT_FALSE(verify_result(t, 1, 0.5f).ok) << "C as it was is not the result";
}

TEST(Verify, LargeProblemsAreProjected) {
    const Tensors t = tensors_for("gemm:m=300,n=500,k=400,dtype=bf16");
    run_float_gemm(t);
    const VerifyReport report = verify_result(t, 1, 0, as_large());
    EXPECT_TRUE(report.ok);
    EXPECT_EQ(report.projected, 300 * 500);
    EXPECT_GE(report.checked, 16 * 500);
    EXPECT_LT(report.checked, 19 * 500);
    EXPECT_NE(describe(report).find("random projection and sampled rows; 150000 projected"), std::string::npos);
}

TEST(Verify, ProjectionGetsCoarserWithSize) {
    const Problem small = problem_of("gemm:m=1024,n=1024,k=1024"), large = problem_of("gemm:m=8192,n=8192,k=8192");
    EXPECT_EQ(projection_width(small, 2e9), 4);
    EXPECT_EQ(projection_width(large, 2e9), 512);
    EXPECT_TRUE(is_projectable(small));
    EXPECT_TRUE(is_projectable(problem_of("gemm:m=8,n=8,k=8,epilogue=bias,d=add+add,beta=1,scale=row")));
    for (const char* rest : {"epilogue=bias+relu", "d=add+mul", "dtype=int8,out=int8"}) {
        EXPECT_FALSE(is_projectable(problem_of(std::string("gemm:m=8,n=8,k=8,") + rest))) << rest;
    }
}

}  // namespace
}  // namespace tilewise
