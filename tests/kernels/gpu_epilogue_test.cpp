// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "base/random.hpp"
#include "kernels/common/tolerance.hpp"
#include "kernels/gpu/packet.hpp"
#include "measure/element.hpp"

namespace tilewise::gpu {

// The accesses that a kernel's primitives have.
template <int bytes>
Packet<bytes> load_global(const void* from) {
    Packet<bytes> packet;
    std::memcpy(&packet, from, bytes);
    return packet;
}
template <int bytes>
void store_global(void* to, const Packet<bytes>& packet) {
    std::memcpy(to, &packet, bytes);
}

}  // namespace tilewise::gpu

#include "kernels/gpu/epilogue.hpp"  // after what it calls

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
            const double units = kFunctionUnits / 2 * 0x1p-24 * std::max(1.0, double{std::abs(x)});
            EXPECT_NEAR(double{activate(op, x)}, want, units) << static_cast<int>(op) << " of " << x;
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
    args.d[0] = d0, args.epilogue[2] = KernelEpilogueOp::mul, args.d[1] = d1, args.epilogue[3] = KernelEpilogueOp::add;
    EXPECT_FALSE(is_plain(args));
    // 3 * 2 * 0.5 * 4 + 2 * 6 = 24, with bias 34, times 2, plus 7
    EXPECT_EQ((finish<RunTimeChain, Fp32>(args, 4, 0, 1, 2)), 75.0f);
    EXPECT_EQ((finish<RunTimeChain, Fp32>(args, 4, 0, 0, 0)), 1.0f);  // relu between bias and D
    using Exact = Chain<true, KernelScale::row, KernelEpilogueOp::bias, KernelEpilogueOp::relu, KernelEpilogueOp::mul,
                        KernelEpilogueOp::add>;
    EXPECT_EQ((finish<Exact, Fp32>(args, 4, 0, 1, 2)), 75.0f);
    EXPECT_EQ((finish<Exact, Fp32>(args, 4, 0, 0, 0)), 1.0f);
    store<Fp32>(args, 8, 0, 1, 0);
    EXPECT_EQ(c[3], 8.0f);
}

// Each operation changes what the next one gets, so that another order gives another result.
TEST(CudaEpilogue, RunsAreElements) {
    constexpr int kRows = 5, kCols = 12;
    Random random(19);
    u16 c[kRows * kCols], d[kRows * kCols], bias[kCols];
    for (u16* list : {c, d})
        std::generate_n(list, kRows * kCols, [&] { return Bf16::from_float(float(random.between(-9, 9))); });
    std::generate_n(bias, kCols, [&] { return Bf16::from_float(float(random.between(-9, 9))); });
    KernelArgs args = {};
    args.m = kRows, args.n = kCols, args.batch = 1;
    args.c = {c, kCols, 1, 0};
    args.alpha = 0.5f, args.beta = 2;
    args.bias = bias, args.d[0] = d;
    args.epilogue[0] = KernelEpilogueOp::bias, args.epilogue[1] = KernelEpilogueOp::add;
    args.epilogue[2] = KernelEpilogueOp::silu;
    using Exact = Chain<true, KernelScale::none, KernelEpilogueOp::bias, KernelEpilogueOp::add, KernelEpilogueOp::silu>;
    for (int row = 0; row < kRows; ++row) {
        for (int col = 0; col < kCols; ++col) {
            float sums[4], runs[4], exact[4];
            for (int i = 0; i < 4; ++i) sums[i] = float(random.between(-20, 20));
            const RunPlace place = run_place(args, 0, row, col, std::min(4, kCols - col));
            finish_run<RunTimeChain, Bf16, Along::columns>(args, sums, place, runs);
            finish_run<Exact, Bf16, Along::columns>(args, sums, place, exact);
            for (int i = 0; i < place.count; ++i) {
                const float one = finish<RunTimeChain, Bf16>(args, sums[i], 0, row, col + i);
                EXPECT_EQ(runs[i], one) << row << ' ' << col + i;
                EXPECT_EQ(exact[i], one) << row << ' ' << col + i;
                const int at = row * kCols + col + i;
                const double x =
                    0.5 * sums[i] + 2.0 * Bf16::to_float(c[at]) + Bf16::to_float(bias[col + i]) + Bf16::to_float(d[at]);
                EXPECT_NEAR(one, x / (1 + std::exp(-x)), 1e-5) << row << ' ' << col + i;
            }
        }
    }
}

TEST(CudaEpilogue, DoesNotReadCWithoutBeta) {
    float c = std::numeric_limits<float>::quiet_NaN();
    KernelArgs args = {};
    args.c = {&c, 1, 1, 0};
    args.alpha = 2;
    EXPECT_TRUE(is_plain(args));
    EXPECT_EQ((finish<RunTimeChain, Fp32>(args, 3, 0, 0, 0)), 6.0f);
}

}  // namespace
}  // namespace tilewise::gpu
