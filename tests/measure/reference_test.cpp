// SPDX-License-Identifier: MIT
#include "measure/reference.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.hpp"
#include "measure/float_gemm.hpp"

namespace tilewise {
namespace {

// The definition, one element at a time, with another order of summation.
double plainly(const Tensors& t, float alpha, float beta, std::int64_t batch, std::int64_t i, std::int64_t j) {
    const Problem& p = t.problem();
    double x = 0;
    for (std::int64_t q = p.gemm.k - 1; q >= 0; --q) x += element(t.a(), batch, i, q) * element(t.b(), batch, q, j);
    x *= alpha;
    if (p.scale == Scale::tensor) x *= double{t.scale_a()[0]} * double{t.scale_b()[0]};
    if (p.scale == Scale::row) x *= double{t.scale_a()[i]} * double{t.scale_b()[j]};
    if (p.beta) x += beta * element(t.original_c(), batch, i, j);
    std::size_t d = 0;
    for (const EpilogueOp op : p.epilogue) {
        double bias = 0;
        switch (op) {
            case EpilogueOp::add: x += element(t.d(d++), batch, i, j); break;
            case EpilogueOp::mul: x *= element(t.d(d++), batch, i, j); break;
            case EpilogueOp::bias:
                decode(p.dtype_out, static_cast<const std::byte*>(t.bias()) + j * bytes_of(p.dtype_out), 1, 1, &bias);
                x += bias;
                break;
            case EpilogueOp::relu: x = std::max(x, 0.0); break;
            case EpilogueOp::relu6: x = std::min(std::max(x, 0.0), 6.0); break;
            case EpilogueOp::gelu: x = 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); break;
            case EpilogueOp::gelu_tanh:
                x = 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * std::pow(x, 3))));
                break;
            case EpilogueOp::silu: x = x / (1 + std::exp(-x)); break;
            case EpilogueOp::sigmoid: x = 1 / (1 + std::exp(-x)); break;
            case EpilogueOp::tanh: x = std::tanh(x); break;
            case EpilogueOp::hardswish: x = x * std::min(std::max(x + 3, 0.0), 6.0) / 6; break;
        }
    }
    return x;
}

void expect_plain(const Tensors& t, float alpha, float beta) {
    const Problem& p = t.problem();
    const std::vector<double> got = reference_result(t, {alpha, beta});
    ASSERT_EQ(got.size(), static_cast<std::size_t>(p.gemm.batch * p.gemm.m * p.gemm.n));
    for (std::size_t at = 0; at < got.size(); ++at) {
        const auto flat = static_cast<std::int64_t>(at);
        const double want =
            plainly(t, alpha, beta, flat / p.gemm.n / p.gemm.m, flat / p.gemm.n % p.gemm.m, flat % p.gemm.n);
        ASSERT_NEAR(got[at], want, 1e-12 * (1 + std::abs(want))) << print_problem(p) << " at " << at;
    }
}

TEST(Reference, EveryLayoutDtypeAndOption) {
    Random random(3);
    const std::vector<std::string> layouts = {"rcr", "rrr", "crr", "ccr", "rcc", "rrc", "crc", "ccc"};
    const std::vector<std::string> dtypes = {"fp32", "fp16",      "bf16", "fp8",
                                             "bf8",  "fp8,b=bf8", "int8", "int8,out=fp32"};
    const std::vector<std::string> extras = {"",
                                             ",beta=1",
                                             ",scale=tensor",
                                             ",scale=row",
                                             ",d=add+mul",
                                             ",epilogue=bias+relu",
                                             ",epilogue=gelu+bias",
                                             ",batch=3,batch_stride_a=0",
                                             ",batch=2,lda=70,ldb=75,ldc=71",
                                             ",math=strict,epilogue=tanh,d=mul,beta=1,scale=row"};
    for (const std::string& layout : layouts) {
        for (const std::string& dtype : dtypes) {
            const std::string shape = "m=" + std::to_string(random.between(1, 40)) +
                                      ",n=" + std::to_string(random.between(1, 40)) +
                                      ",k=" + std::to_string(random.between(1, 60));
            const std::string text = "gemm:" + shape + ",layout=" + layout + ",dtype=" + dtype + random.pick(extras);
            expect_plain(tensors_for(text, random.bits()), 0.75f, -1.5f);
        }
    }
}

TEST(Reference, EveryActivation) {
    for (const std::string_view op : EnumNames<EpilogueOp>::names) {
        expect_plain(tensors_for("gemm:m=20,n=20,k=40,epilogue=" + std::string(op)), 2, 0);
    }
    expect_plain(tensors_for("gemm:m=20,n=20,k=40,epilogue=bias+silu+relu6+tanh"), 1, 0);
    expect_plain(tensors_for("gemm:m=20,n=20,k=40,epilogue=bias+add+relu+mul+add,d=mul"), 1, 0);
}

TEST(Reference, BlocksOfEverySizeJoin) {
    for (const char* shape : {"m=1,n=1,k=1", "m=129,n=3,k=257", "m=3,n=257,k=512", "m=130,n=260,k=5"}) {
        expect_plain(tensors_for(std::string("gemm:layout=rrr,") + shape), 1, 0);
    }
}

TEST(Reference, RowsAreThoseOfTheWhole) {
    const Tensors t = tensors_for("gemm:m=37,n=300,k=50,batch=3,epilogue=bias+gelu");
    const std::vector<double> whole = reference_result(t, {});
    const std::vector<RowRef> rows = {{2, 36}, {0, 5}, {0, 4}, {1, 0}, {2, 36}};
    const std::vector<Bounded> some = reference_rows(t, rows, {});
    ASSERT_EQ(some.size(), rows.size() * 300);
    for (std::size_t r = 0; r < rows.size(); ++r) {
        for (std::size_t j = 0; j < 300; ++j) {
            EXPECT_EQ(some[r * 300 + j].value,
                      whole[static_cast<std::size_t>(rows[r].batch * 37 + rows[r].row) * 300 + j]);
        }
    }
}

TEST(Reference, NaNAndInfinityStayWhereTheyBelong) {
    Tensors t = tensors_for("gemm:m=6,n=6,k=6,epilogue=relu");
    set_element(t.a(), 0, 2, 3, NAN);
    set_element(t.a(), 0, 4, 1, INFINITY);
    const std::vector<double> got = reference_result(t, {});
    for (std::size_t i = 0; i < 36; ++i) {
        EXPECT_EQ(std::isnan(got[i]), i / 6 == 2) << i;
        if (i / 6 == 4) {
            EXPECT_EQ(got[i], element(t.b(), 0, 1, static_cast<std::int64_t>(i % 6)) > 0 ? INFINITY : 0) << i;
        }
        if (i / 6 != 2 && i / 6 != 4) {
            EXPECT_TRUE(std::isfinite(got[i]));
        }
    }
}

TEST(Reference, BetaZeroDoesNotReadC) {
    Tensors t = tensors_for("gemm:m=4,n=4,k=4,beta=1");
    set_element(t.original_c(), 0, 1, 1, NAN);
    for (const double x : reference_result(t, {1, 0})) EXPECT_TRUE(std::isfinite(x));
    EXPECT_TRUE(std::isnan(reference_result(t, {1, 1})[5]));
}

}  // namespace
}  // namespace tilewise
