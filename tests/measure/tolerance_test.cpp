// SPDX-License-Identifier: MIT
// The tolerance must let pass what a careful kernel does to any data, and nothing that is wrong on random data.
#include "measure/tolerance.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "config/archs.hpp"
#include "measure/float_gemm.hpp"
#include "measure/reference.hpp"
#include "measure/verify.hpp"

namespace tilewise {
namespace {

std::int64_t count_wrong(const Tensors& t, const FloatGemm& how = {}) {
    VerifyOptions options;
    options.summation.split_k = how.split_k;
    return verify_result(t, how.alpha, how.beta, options).failed;
}

std::int64_t wrong_after(const std::string& text, const FloatGemm& how = {}, std::uint64_t seed = 1) {
    const Tensors t = tensors_for(text, seed);
    run_float_gemm(t, how);
    return count_wrong(t, how);
}

constexpr const char* kDtypes[] = {"fp32", "fp16", "bf16", "fp8", "bf8", "int8", "fp8,out=fp8", "bf8,out=bf8"};

TEST(Tolerance, ACarefulKernelPasses) {
    for (const char* dtype : kDtypes) {
        for (const int k : {1, 2, 7, 64, 333, 4096}) {
            const std::string text = "gemm:m=24,n=40,k=" + std::to_string(k) + ",dtype=" + dtype;
            EXPECT_EQ(wrong_after(text), 0) << text;
            FloatGemm split;
            split.split_k = 5;
            EXPECT_EQ(wrong_after(text, split), 0) << text << " in parts";
        }
    }
}

// All of one sign, added one by one: the data on which rounding errors of a sum grow fastest.
TEST(Tolerance, ACarefulKernelPassesOnTheWorstData) {
    for (const int k : {10, 1000, 30000}) {
        const Tensors t = tensors_for("gemm:m=16,n=24,k=" + std::to_string(k));
        for (std::int64_t i = 0; i < 24; ++i) {
            for (std::int64_t q = 0; q < k; ++q) {
                if (i < 16) set_element(t.a(), 0, i, q, std::abs(element(t.a(), 0, i, q)));
                set_element(t.b(), 0, q, i, std::abs(element(t.b(), 0, q, i)));
            }
        }
        run_float_gemm(t);
        const VerifyReport report = verify_result(t, 1, 0);
        EXPECT_EQ(report.failed, 0) << k << ": " << describe(report);
        EXPECT_GT(report.max_ratio, k > 10 ? 0.02 : 0.0) << "and the bound is not idle";
    }
}

TEST(Tolerance, EveryFusedOperationPasses) {
    FloatGemm how;
    how.alpha = 1.7f;
    how.beta = -0.3f;
    for (const char* dtype : {"fp32", "fp16", "bf16", "fp8,out=fp8"}) {
        for (const std::string_view op : EnumNames<EpilogueOp>::names) {
            const std::string text = std::string("gemm:m=40,n=40,k=100,scale=row,beta=1,d=mul+add,dtype=") + dtype +
                                     ",epilogue=" + std::string(op);
            EXPECT_EQ(wrong_after(text, how), 0) << text;
        }
    }
}

TEST(Tolerance, IntegersToIntegersAreExact) {
    const Tensors t = tensors_for("gemm:m=8,n=8,k=2000,dtype=int8");
    run_float_gemm(t);
    EXPECT_EQ(count_wrong(t), 0);
    set_element(t.c(), 0, 3, 4, element(t.c(), 0, 3, 4) + 1);
    EXPECT_EQ(count_wrong(t), 1);
    for (const Bounded& x : reference_rows(t, all_rows(t.problem()), {})) EXPECT_EQ(x.error, 0);
    // Also with whole-numbered additions that fit in fp32, in which they may be done.
    const Tensors more = tensors_for("gemm:m=8,n=8,k=50,dtype=int8,epilogue=bias+relu,d=add,beta=1");
    for (const Bounded& x : reference_rows(more, all_rows(more.problem()), {2, 3})) EXPECT_EQ(x.error, 0);
}

// The last product of the sum left out, in every type and up to a long sum: elements where it counts are caught.
TEST(Tolerance, AMissingProductIsFound) {
    for (const char* dtype : kDtypes) {
        for (const int k : {2, 33, 512, 4096}) {
            const std::string text = "gemm:m=32,n=32,k=" + std::to_string(k) + ",dtype=" + dtype;
            FloatGemm how;
            how.dropped = 1;
            const bool coarse = std::string(dtype).find("out=") != std::string::npos;
            EXPECT_GT(wrong_after(text, how), coarse ? 10 : 300) << text;
        }
    }
}

TEST(Tolerance, SwappedRowsAreFound) {
    for (const char* dtype : kDtypes) {
        const Tensors t = tensors_for(std::string("gemm:m=32,n=64,k=1024,dtype=") + dtype);
        run_float_gemm(t);
        for (std::int64_t j = 0; j < 64; ++j) {
            const double upper = element(t.c(), 0, 7, j);
            set_element(t.c(), 0, 7, j, element(t.c(), 0, 8, j));
            set_element(t.c(), 0, 8, j, upper);
        }
        EXPECT_GT(count_wrong(t), 100) << dtype;
    }
}

TEST(Tolerance, Tf32IsRightOnlyWhereItWasAskedFor) {
    FloatGemm cut;
    cut.cut_inputs = true;
    for (const int k : {16, 256, 2048}) {
        const std::string text = "gemm:m=32,n=32,k=" + std::to_string(k);
        EXPECT_GT(wrong_after(text, cut), 0) << text;
        EXPECT_GT(wrong_after(text + ",math=tf32x3", cut), 0) << text;
        EXPECT_EQ(wrong_after(text + ",math=tf32", cut), 0) << text;
        cut.dropped = 1;
        EXPECT_GT(wrong_after(text + ",math=tf32", cut), 100) << text << ", but not anything goes";
        cut.dropped = 0;
    }
}

// 8-bit floats whose sums are cut as on a GPU, in the way of both math classes: right there, wrong on a CPU.
TEST(Tolerance, CutSumsAreRightOnlyWhereTheArchCutsThem) {
    for (const auto& [math, part] : {std::pair{"strict", 256}, std::pair{"fast", 4096}}) {
        for (const int k : {256, 1024, 4096}) {
            FloatGemm cut;
            cut.cut_sums = true;
            cut.split_k = std::max(1, k / part);
            const Tensors t = tensors_for("gemm:m=32,n=32,dtype=fp8,out=fp32,k=" + std::to_string(k) + ",math=" + math);
            run_float_gemm(t, cut);
            for (const auto& [name, wrong] : {std::pair{"sm_90a", false}, std::pair{"cpu-generic", true},
                                              std::pair{"cpu-avx512", true}, std::pair{"cpu-amx", true}}) {
                VerifyOptions options;
                options.summation = summation_of({}, arch_named(name));
                options.summation.split_k = cut.split_k;
                EXPECT_EQ(verify_result(t, 1, 0, options).ok, !wrong) << name << ' ' << math << ' ' << k;
            }
        }
    }
}

// Three of 64 factors of each row are subnormals, and the kernel takes them for zero.
TEST(Tolerance, SubnormalsMayBeZeroOnlyWhereTheArchFlushesThem) {
    const auto failed_on = [](const std::string& arch, const std::string& text, std::int64_t dropped) {
        const Tensors t = tensors_for(text);
        const auto set_factors = [&](double value) {
            for (std::int64_t row = 0; row < 32; ++row)
                for (std::int64_t k = 0; k < 3; ++k) set_element(t.a(), 0, row, k, value);
        };
        set_factors(0);
        FloatGemm how;
        how.dropped = dropped;
        run_float_gemm(t, how);
        set_factors(0x1.8p-15);
        VerifyOptions options;
        options.summation = summation_of({}, arch_named(arch));
        return verify_result(t, 1, 0, options).failed;
    };
    for (const std::string dtype : {"fp16", "bf8"}) {
        const std::string text = "gemm:m=32,n=32,k=64,out=fp32,dtype=" + dtype;
        EXPECT_EQ(failed_on("gfx90a", text, 0), 0) << dtype;
        EXPECT_GT(failed_on("gfx942", text, 0), 100) << dtype;
        EXPECT_GT(failed_on("gfx90a", text, 1), 900) << dtype << ", but not anything goes";
    }
}

TEST(Tolerance, BoundsGrowWithWhatTheyAreMadeOf) {
    const auto relative = [](const std::string& text, int split_k) {
        return error_model(problem_of(text), {split_k, kCutSumBits}).relative;
    };
    EXPECT_LT(relative("gemm:m=1,n=1,k=10", 1), relative("gemm:m=1,n=1,k=1000", 1));
    EXPECT_LE(relative("gemm:m=1,n=1,k=1000", 1), relative("gemm:m=1,n=1,k=1000", 32));
    EXPECT_LT(relative("gemm:m=1,n=1,k=1000", 1), relative("gemm:m=1,n=1,k=1000,math=tf32x3", 1));
    EXPECT_LT(relative("gemm:m=1,n=1,k=1000,dtype=fp8", 1), relative("gemm:m=1,n=1,k=1000,dtype=fp8,math=fast", 1));
    EXPECT_EQ(relative("gemm:m=1,n=1,k=1000,dtype=int8", 8), 0);
    EXPECT_EQ(relative("gemm:m=1,n=1,k=1", 1), 4 * 0x1p-24) << "never more than one rounding per step, and a few";
}

TEST(Tolerance, OneRoundingToTheOutput) {
    const Bounded exact = {1 + 0x1p-8, 0};  // halfway between two bf16
    EXPECT_TRUE(agrees(DType::bf16, exact, 1));
    EXPECT_FALSE(agrees(DType::bf16, exact, 1 + 0x1p-7)) << "ties go to even";
    const Bounded close = {1 + 0x1p-8, 1e-6};
    EXPECT_TRUE(agrees(DType::bf16, close, 1 + 0x1p-7)) << "which a tiny error may decide otherwise";
    EXPECT_FALSE(agrees(DType::bf16, close, 1 - 0x1p-8));
    EXPECT_TRUE(agrees(DType::int8, {3.4999999, 1e-6}, 4));
    EXPECT_FALSE(agrees(DType::int8, {3.49, 1e-6}, 4));
    EXPECT_NEAR(tolerance_of(DType::bf16, close), 0x1p-8, 1e-4);
    EXPECT_EQ(tolerance_of(DType::int32, {17, 0}), 0);
}

TEST(Tolerance, BeyondTheRange) {
    EXPECT_TRUE(agrees(DType::fp16, {70000, 1}, INFINITY));
    EXPECT_FALSE(agrees(DType::fp16, {70000, 1}, 65504));
    EXPECT_TRUE(agrees(DType::fp16, {65520, 1}, 65504)) << "at the border either will do";
    EXPECT_TRUE(agrees(DType::fp8, {1000, 1}, 448));
    EXPECT_FALSE(agrees(DType::fp8, {1000, 1}, NAN));
    EXPECT_TRUE(agrees(DType::int8, {-1000, 1}, -128));
    EXPECT_FALSE(agrees(DType::int8, {-1000, 1}, -127));
    EXPECT_TRUE(agrees(DType::fp16, {1e-9, 0}, 0));
}

TEST(Tolerance, NaNAndInfinityMustMatch) {
    for (const DType type : {DType::fp32, DType::fp16, DType::bf16, DType::bf8}) {
        EXPECT_TRUE(agrees(type, {NAN, 0}, NAN));
        EXPECT_FALSE(agrees(type, {NAN, 0}, 1));
        EXPECT_FALSE(agrees(type, {1, 0.1}, NAN));
        EXPECT_TRUE(agrees(type, {INFINITY, 0}, INFINITY));
        EXPECT_FALSE(agrees(type, {INFINITY, 0}, -INFINITY));
        EXPECT_FALSE(agrees(type, {INFINITY, 0}, NAN));
        EXPECT_FALSE(agrees(type, {1, 0.1}, INFINITY));
    }
    EXPECT_TRUE(agrees(DType::fp8, {INFINITY, 0}, NAN)) << "there is no infinity";
    EXPECT_TRUE(agrees(DType::fp8, {-INFINITY, 0}, -448));
    EXPECT_FALSE(agrees(DType::fp8, {-INFINITY, 0}, 448));
    EXPECT_FALSE(agrees(DType::fp32, {INFINITY, 0}, 3e38));
}

// The slopes are bounds: a changed argument never changes the result by more.
TEST(Tolerance, SlopesBoundTheFunctions) {
    for (std::size_t i = 1; i < EnumNames<EpilogueOp>::names.size(); ++i) {
        const auto op = static_cast<EpilogueOp>(i);
        if (reads_d(op)) continue;
        for (double x = -12; x < 12; x += 0.01) {
            const Bounded y = apply(op, {x, 0.01});
            EXPECT_LE(std::abs(apply(op, {x + 0.01, 0}).value - y.value), y.error + 1e-12) << name_of(op) << ' ' << x;
        }
    }
}

}  // namespace
}  // namespace tilewise
