// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/random.hpp"
#include "kernels/gpu/epilogue.hpp"
#include "measure/element.hpp"

namespace tilewise::gpu {
namespace {

template <class T>
void expect_round_trip(u32 count) {
    for (u32 bits = 0; bits < count; ++bits) {
        const auto raw = static_cast<typename T::Storage>(bits);
        const float value = T::to_float(raw);
        if (std::isnan(value)) {
            EXPECT_TRUE(std::isnan(T::to_float(T::from_float(value)))) << bits;
        } else if (!std::isinf(value) || sizeof(raw) > 1) {  // an 8-bit infinity is written as the largest number
            EXPECT_EQ(T::from_float(value), raw) << bits;
        }
    }
}

TEST(CudaTypes, KeepEveryValue) {
    expect_round_trip<Fp16>(1u << 16);
    expect_round_trip<Bf16>(1u << 16);
    expect_round_trip<Fp8>(1u << 8);
    expect_round_trip<Bf8>(1u << 8);
    expect_round_trip<Int8>(1u << 8);
}

template <class T>
void expect_same_as_reference(DType dtype, float x) {
    EXPECT_EQ(u32{T::from_float(x)}, encode(dtype, double{x})) << name_of(dtype) << " of " << x;
}

TEST(CudaTypes, RoundLikeTheReference) {
    Random random(5);
    for (int i = 0; i < 20000; ++i) {
        const float x = std::ldexp(static_cast<float>(random.between(-(1 << 24), 1 << 24)),
                                   static_cast<int>(random.between(-50, -8)));
        expect_same_as_reference<Fp16>(DType::fp16, x);
        expect_same_as_reference<Bf16>(DType::bf16, x);
        expect_same_as_reference<Fp8>(DType::fp8, x);
        expect_same_as_reference<Bf8>(DType::bf8, x);
    }
}

TEST(CudaTypes, MakeTheNearestEvenInteger) {
    EXPECT_EQ(Int8::from_float(2.5f), 2);
    EXPECT_EQ(Int8::from_float(-3.5f), -4);
    EXPECT_EQ(Int8::from_float(1e9f), 127);
    EXPECT_EQ(Int32::from_float(4194305.5f), 4194306);
    EXPECT_EQ(Int32::from_float(4194304.5f), 4194304);
    EXPECT_EQ(Int32::from_float(-1e20f), std::numeric_limits<int>::min());
    EXPECT_EQ(Int32::from_float(1e20f), std::numeric_limits<int>::max());
    EXPECT_EQ(Int32::from_float(std::numeric_limits<float>::quiet_NaN()), 0);
}

constexpr KernelEpilogueOp kOps[] = {KernelEpilogueOp::relu,      KernelEpilogueOp::relu6,    KernelEpilogueOp::gelu,
                                     KernelEpilogueOp::gelu_tanh, KernelEpilogueOp::silu,     KernelEpilogueOp::sigmoid,
                                     KernelEpilogueOp::tanh,      KernelEpilogueOp::hardswish};

double exact(KernelEpilogueOp op, double x) {
    switch (op) {
        case KernelEpilogueOp::relu: return std::max(x, 0.0);
        case KernelEpilogueOp::relu6: return std::min(std::max(x, 0.0), 6.0);
        case KernelEpilogueOp::gelu: return x * 0.5 * std::erfc(-x * std::sqrt(0.5));
        case KernelEpilogueOp::gelu_tanh:
            return x / (1 + std::exp(-2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
        case KernelEpilogueOp::silu: return x / (1 + std::exp(-x));
        case KernelEpilogueOp::sigmoid: return 1 / (1 + std::exp(-x));
        case KernelEpilogueOp::tanh: return std::tanh(x);
        case KernelEpilogueOp::hardswish: return x * std::min(std::max(x + 3, 0.0), 6.0) / 6;
        default: return x;
    }
}

TEST(CudaEpilogue, ActivatesAccuratelyAndKeepsNan) {
    for (const KernelEpilogueOp op : kOps) {
        for (float x = -6.0f; x < 8.0f; x += 0.037f) {
            const double want = exact(op, double{x});
            EXPECT_NEAR(double{activate(op, x)}, want, 4e-6 * std::abs(want) + 1e-12)
                << static_cast<int>(op) << " of " << x;
        }
        EXPECT_TRUE(std::isnan(activate(op, std::numeric_limits<float>::quiet_NaN()))) << static_cast<int>(op);
    }
}

TEST(CudaEpilogue, AppliesEverythingInOrder) {
    float c[6] = {1, 2, 3, 4, 5, 6}, d0[6] = {2, 2, 2, 2, 2, 2}, d1[6] = {1, 1, 1, 1, 1, 7}, bias[3] = {-100, 0, 10};
    const float scale_a[2] = {1, 2}, scale_b[3] = {1, 1, 0.5f};
    KernelArgs args = {};
    args.m = 2, args.n = 3, args.batch = 1;
    args.c = {c, 3, 1, 0};
    args.alpha = 3, args.beta = 2;
    args.scale = KernelScale::row, args.scale_a = scale_a, args.scale_b = scale_b;
    args.bias = bias, args.epilogue[0] = KernelEpilogueOp::bias, args.epilogue[1] = KernelEpilogueOp::relu;
    args.d[0] = d0, args.d_ops[0] = KernelDOp::mul, args.d[1] = d1, args.d_ops[1] = KernelDOp::add;
    EXPECT_FALSE(is_plain(args));
    // 3 * 2 * 0.5 * 4 + 2 * 6 = 24, with bias 34, times 2, plus 7
    EXPECT_EQ(finish<Fp32>(args, 4, 0, 1, 2), 75.0f);
    EXPECT_EQ(finish<Fp32>(args, 4, 0, 0, 0), 1.0f);  // relu between bias and D
    store<Fp32>(args, 8, 0, 1, 0);
    EXPECT_EQ(c[3], 8.0f);
}

TEST(CudaEpilogue, DoesNotReadCWithoutBeta) {
    float c = std::numeric_limits<float>::quiet_NaN();
    KernelArgs args = {};
    args.c = {&c, 1, 1, 0};
    args.alpha = 2;
    EXPECT_TRUE(is_plain(args));
    EXPECT_EQ(finish<Fp32>(args, 3, 0, 0, 0), 6.0f);
}

}  // namespace
}  // namespace tilewise::gpu
