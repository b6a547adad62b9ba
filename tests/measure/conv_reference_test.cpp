// SPDX-License-Identifier: MIT
// Operands, reference and verdict of convolutions, against the definition (plain_conv.hpp).
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.hpp"
#include "measure/float_gemm.hpp"
#include "measure/plain_conv.hpp"
#include "measure/reference.hpp"
#include "measure/verify.hpp"
#include "problem/random_problem.hpp"

namespace tilewise {
namespace {

constexpr Op kDirections[] = {Op::conv_fwd, Op::conv_bwd_data, Op::conv_bwd_weight};

Problem random_conv(Random& random, Op op) {
    Problem p;
    do {
        p = Problem{};
        p.op = op;
        randomize_types(random, p);
        randomize_conv(random, p, 5);
        randomize_options(random, p);
    } while (check_problem(p) || flops(p) > 2e5);
    p.math = Math::strict;
    return p;
}

// The index of an element of the output in memory, given its place in the GEMM view.
std::int64_t flat_index(const MatrixView& c, std::int64_t batch, std::int64_t row, std::int64_t col) {
    return (static_cast<std::byte*>(c.at(batch, row, col)) - static_cast<std::byte*>(c.data)) / bytes_of(c.type);
}

// Finishes the sum of products of the element at that place of the output as stored.
double finished(const Tensors& t, const PlainConv& plain, double x, float alpha, float beta, std::int64_t at) {
    const Problem& p = t.problem();
    const auto element_of = [&](const void* data, std::int64_t i) {
        double value = 0;
        decode(p.dtype_out, static_cast<const std::byte*>(data) + i * bytes_of(p.dtype_out), 1, 1, &value);
        return value;
    };
    x *= alpha;
    if (p.scale == Scale::tensor) x *= double{t.scale_a()[0]} * double{t.scale_b()[0]};
    if (p.beta) x += beta * element_of(t.original_c().data, at);
    std::size_t d = 0;
    for (const EpilogueOp op : p.epilogue) {
        if (reads_d(op)) {
            const double term = element_of(t.d(d++).data, at);
            x = op == EpilogueOp::add ? x + term : x * term;
        } else {
            x = op == EpilogueOp::bias
                    ? x + element_of(t.bias(), plain.channel_of(at))
                    : apply(op, Bounded{x, 0}).value;  // tests/measure/reference_test.cpp tests these
        }
    }
    return x;
}

TEST(ConvReference, IsWhatTheDefinitionSays) {
    Random random(11);
    for (int i = 0; i < 600; ++i) {
        const Problem p = random_conv(random, kDirections[i % 3]);
        auto tensors = Tensors::make(p, random.bits());
        ASSERT_TRUE(tensors.ok()) << tensors.error().message;
        const GemmView view = gemm_view(p);
        const std::vector<double> got = reference_result(*tensors, {0.75f, -1.5f}), sums = plain_products(*tensors);
        ASSERT_EQ(got.size(), sums.size());
        const PlainConv plain(p);
        std::vector<bool> seen(sums.size());
        for (std::size_t e = 0; e < got.size(); ++e) {
            const auto index = static_cast<std::int64_t>(e), line = index / view.n;
            const std::int64_t at = flat_index(tensors->c(), line / view.m, line % view.m, index % view.n);
            ASSERT_TRUE(at >= 0 && at < static_cast<std::int64_t>(sums.size())) << print_problem(p);
            const auto place = static_cast<std::size_t>(at);
            ASSERT_FALSE(seen[place]) << print_problem(p) << " visits " << at << " twice";
            seen[place] = true;
            const double want = finished(*tensors, plain, sums[place], 0.75f, -1.5f, at);
            ASSERT_NEAR(got[e], want, 1e-10 * (1 + std::abs(want) + std::abs(sums[place])))
                << print_problem(p) << " at " << at;
        }
    }
}

TEST(ConvReference, BlocksOfEverySizeJoin) {
    for (const char* text : {"conv_fwd:n=3,g=1,c=130,k=300,in=9x5,filter=3x3,pad=1",
                             "conv_bwd_data:n=1,g=2,c=520,k=200,in=13,filter=3,stride=2,pad=1",
                             "conv_bwd_weight:n=5,g=1,c=40,k=140,in=19x17,filter=3x3,layout=ngchw"}) {
        const Tensors t = tensors_for(text);
        const GemmView view = gemm_view(t.problem());
        const std::vector<double> got = reference_result(t, {}), want = plain_products(t);
        for (std::size_t e = 0; e < got.size(); ++e) {
            const auto index = static_cast<std::int64_t>(e), line = index / view.n;
            const auto at = flat_index(t.c(), line / view.m, line % view.m, index % view.n);
            ASSERT_NEAR(got[e], want[static_cast<std::size_t>(at)], 1e-10) << text << " at " << e;
        }
    }
}

// Leaves in C what a kernel that errs nowhere but in its last rounding would.
void put_reference(const Tensors& t, float alpha, float beta) {
    const GemmView view = gemm_view(t.problem());
    const std::vector<double> values = reference_result(t, {alpha, beta});
    for (std::size_t e = 0; e < values.size(); ++e) {
        const auto index = static_cast<std::int64_t>(e), line = index / view.n;
        set_element(t.c(), line / view.m, line % view.m, index % view.n, values[e]);
    }
}

VerifyOptions as_large_conv() {
    VerifyOptions options;
    options.full_work = 1e4;
    return options;
}

TEST(ConvVerify, AcceptsWhatIsRightAndNoElementLess) {
    Random random(12);
    for (int i = 0; i < 150; ++i) {
        const Problem p = random_conv(random, kDirections[i % 3]);
        auto tensors = Tensors::make(p, random.bits());
        ASSERT_TRUE(tensors.ok());
        const float alpha = suggested_alpha(p), beta = p.beta ? 0.5f : 0.0f;
        tensors->reset_output();
        put_reference(*tensors, alpha, beta);
        for (const VerifyOptions& options : {VerifyOptions{}, as_large_conv()}) {
            const VerifyReport report = verify_result(*tensors, alpha, beta, options);
            EXPECT_TRUE(report.ok) << print_problem(p) << "\n" << describe(report);
        }
        if (p.dtype_out == DType::int8) continue;  // has no value that is never right
        const GemmView view = gemm_view(p);
        set_element(tensors->c(), random.between(0, view.batch - 1), random.between(0, view.m - 1),
                    random.between(0, view.n - 1), p.dtype_out == DType::int32 ? 0x7fffffff : NAN);
        EXPECT_FALSE(verify_result(*tensors, alpha, beta).ok) << print_problem(p);
    }
}

// A projection covers every element: a small error anywhere is found without computing every element.
TEST(ConvVerify, ProjectionFindsOneElement) {
    for (const char* text :
         {"conv_fwd:n=2,g=2,c=64,k=128,in=15x13,filter=3x3,pad=1,epilogue=bias,d=add,beta=1",
          "conv_fwd:n=2,g=2,c=64,k=128,in=15x13,filter=3x3,pad=1,layout=ngchw",
          "conv_bwd_data:n=2,g=1,c=64,k=64,in=15x13,filter=3x3,stride=2,pad=1,layout=ngchw,epilogue=bias",
          "conv_bwd_weight:n=2,g=2,c=64,k=64,in=15x13,filter=3x3,pad=1"}) {
        const Tensors t = tensors_for(text);
        const GemmView view = gemm_view(t.problem());
        const float beta = t.problem().beta ? 0.5f : 0.0f;
        put_reference(t, 1, beta);
        VerifyOptions options = as_large_conv();
        options.sample_rows = 1;
        const VerifyReport right = verify_result(t, 1, beta, options);
        EXPECT_TRUE(right.ok) << text << describe(right);
        EXPECT_EQ(right.method, VerifyMethod::projection_and_rows);
        const std::int64_t batch = view.batch - 1, row = view.m / 2 + 1, col = view.n / 2;
        set_element(t.c(), batch, row, col, element(t.c(), batch, row, col) + 0.01);
        const VerifyReport wrong = verify_result(t, 1, beta, options);
        ASSERT_TRUE(wrong.failure) << text;
        EXPECT_EQ(wrong.failure->row, row);
        EXPECT_EQ(wrong.failure->col, col);
    }
}

// Where gathering is most of the work rows are sampled, and every element is still looked at for having been written.
TEST(ConvVerify, LargeDepthwiseIsSampled) {
    const Tensors t = tensors_for("conv_fwd:n=2,g=64,c=64,k=64,in=30x30,filter=5x5,pad=2");
    put_reference(t, 1, 0);
    VerifyOptions options = as_large_conv();
    options.project_work = 1e6;
    const VerifyReport right = verify_result(t, 1, 0, options);
    EXPECT_TRUE(right.ok);
    EXPECT_EQ(right.method, VerifyMethod::sampled_rows);
    set_element(t.c(), 40, 1234, 0, NAN);
    EXPECT_FALSE(verify_result(t, 1, 0, options).ok);
}

TEST(ConvTensors, InputsAndOutputAreGuarded) {
    const Tensors t = tensors_for("conv_fwd:n=2,g=2,c=6,k=4,in=5,filter=3,align=1,epilogue=bias,d=mul,scale=tensor");
    EXPECT_TRUE(t.check_guards().ok());
    EXPECT_TRUE(std::isnan(element(t.c(), 1, 5, 1))) << "poisoned";
    for (const GuardedBuffer* buffer : t.buffers()) {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 8, 4u) << "aligned to an element and no more";
        buffer->data()[buffer->bytes()] = std::byte{0};
        EXPECT_FALSE(t.check_guards().ok());
        buffer->data()[buffer->bytes()] = GuardedBuffer::kGuard;
    }
    EXPECT_TRUE(t.check_guards().ok());
}

}  // namespace
}  // namespace tilewise
