// SPDX-License-Identifier: MIT
// The activations of an epilogue in fp32, by the hardware's own powers and reciprocals. Their error is a few units of |x| 2^-24
// (tolerance.hpp allows 16), also where results are tiny. NaN goes through all of them. Instructions of one element, conversions and
// loads apart: relu 1, relu6 2, hardswish 4, sigmoid 4, silu 5, gelu_tanh 8, gelu 12; two of the last four are powers and reciprocals, of
// which a unit has an eighth as many as of sums.
#pragma once
#include "types.hpp"

namespace tilewise::gpu {

TILEWISE_DEVICE float tanh_of(float x) {
#if defined(TILEWISE_ON_GPU)
    return tanhf(x);
#else
    return __builtin_tanhf(x);
#endif
}

// 1 / (1 + 2^u)
TILEWISE_DEVICE float logistic(float u) { return reciprocal_of(1.0f + exp2_of(u)); }
TILEWISE_DEVICE float sigmoid(float x) {
    constexpr float log2_e = 1.44269504f;
    return logistic(-log2_e * x);
}
TILEWISE_DEVICE float clamp(float x, float low, float high) {  // keeps NaN
    return x < low ? low : x > high ? high : x;
}

// x times the share of a normal distribution that is below x, which is logistic(x q(x^2)): the polynomial was fitted to the error of
// that share. Beyond |x| = 5 it is constant; what it is wrong by is too small to show.
TILEWISE_DEVICE float gelu(float x) {
    constexpr float q0 = -2.30220154f, q1 = -0.10486811f, q2 = 0.000129064366f, q3 = 0.000145463847f,
                    q4 = -8.95982094e-6f, q5 = 1.92362521e-7f;
    const float square = x * x, s = square < 25.0f ? square : 25.0f;
    return x * logistic(x * (q0 + s * (q1 + s * (q2 + s * (q3 + s * (q4 + s * q5))))));
}

TILEWISE_DEVICE float activate(KernelEpilogueOp op, float x) {
    constexpr float root_two_over_pi = 0.79788456f, cubic = 0.044715f;
    switch (op) {
        case KernelEpilogueOp::relu: return x < 0.0f ? 0.0f : x;
        case KernelEpilogueOp::relu6: return clamp(x, 0.0f, 6.0f);
        case KernelEpilogueOp::gelu: return gelu(x);
        case KernelEpilogueOp::gelu_tanh:  // 0.5 x (1 + tanh(u)) = x sigmoid(2 u)
            return x * sigmoid(2.0f * root_two_over_pi * (cubic * x * x * x + x));
        case KernelEpilogueOp::silu: return x * sigmoid(x);
        case KernelEpilogueOp::sigmoid: return sigmoid(x);
        case KernelEpilogueOp::tanh: return tanh_of(x);
        case KernelEpilogueOp::hardswish: return x * (clamp(x + 3.0f, 0.0f, 6.0f) * (1.0f / 6.0f));
        case KernelEpilogueOp::none:
        case KernelEpilogueOp::bias:
        case KernelEpilogueOp::add:
        case KernelEpilogueOp::mul: break;
    }
    return x;
}

}  // namespace tilewise::gpu
