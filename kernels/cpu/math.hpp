// SPDX-License-Identifier: MIT
// exp, erfc, tanh on fp32 lanes and the activations made of them, to about 1e-6 relative. The coefficients are minimax
// fits (relative error): exp(r) on [-ln2/2, ln2/2] 2e-9; exp(z^2) erfc(z) / t as a polynomial of t = 1/(1 + 0.4 z) for
// all z >= 0 1.3e-7; (tanh(x)/x - 1)/x^2 as a polynomial of x^2 up to 0.4 1.5e-7. NaN goes through, infinities give
// limits.
#pragma once
#include "types.hpp"

namespace tilewise::cpu {

template <int N>
TILEWISE_INLINE F polynomial(F x, const float (&c)[N]) {
    F sum = splat<F>(c[N - 1]);
    TILEWISE_UNROLL
    for (int i = N - 2; i >= 0; --i) sum = fma(sum, x, splat<F>(c[i]));
    return sum;
}
TILEWISE_INLINE F magnitude(F x) { return as_float(as_bits(x) & kMagnitude); }
TILEWISE_INLINE F with_sign_of(F x, F sign) { return as_float(as_bits(x) | (as_bits(sign) & kSignBit)); }
TILEWISE_INLINE F infinity() { return as_float(splat<U>(kFloatInfinity)); }

TILEWISE_INLINE F exp(F x) {
    constexpr float highest = 88.72f, lowest = -87.33f;  // beyond: infinity, zero
    constexpr float beyond = 89.0f;                      // what scale_by_power makes infinity of
    constexpr float log2_e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    constexpr float round = 12582912.0f;  // 1.5 * 2^23
    constexpr float c[] = {1.0f, 1.0f, 0.49999991f, 0.16666420f, 0.04166823f, 0.00837482f, 0.00138368f};
    F y = select(x < lowest, splat<F>(lowest), x);
    y = select(y > (kHasScale ? beyond : highest), splat<F>(kHasScale ? beyond : highest), y);
    const F shifted = fma(y, splat<F>(log2_e), splat<F>(round)), n = shifted - round;
    const F r = fma(n, splat<F>(-ln2_low), fma(n, splat<F>(-ln2_high), y));
    if constexpr (kHasScale) return select(x < lowest, F{}, scale_by_power(polynomial(r, c), n));
    // 2^n in two halves: n may be 128, which no single exponent holds
    const I exponent = reinterpret_cast<I>(shifted) - 0x4b400000, half = exponent >> 1;
    const F scale = as_float((half + kFloatBias) << kFloatMantissa);
    const F rest = as_float((exponent - half + kFloatBias) << kFloatMantissa);
    const F value = polynomial(r, c) * scale * rest;
    return select(x < lowest, F{}, select(x > highest, infinity(), value));
}

// erfc(z) for z >= 0.
TILEWISE_INLINE F erfc_positive(F z) {
    constexpr float c[] = {0.22567587f,  0.22566952f, 0.20784386f,  0.16853391f, 0.14146087f,
                           -0.00566772f, 0.16915487f, -0.18294364f, 0.05027260f};
    const F t = 1.0f / fma(z, splat<F>(0.4f), splat<F>(1.0f));
    return t * polynomial(t, c) * exp(-(z * z));
}

TILEWISE_INLINE F tanh(F x) {
    constexpr float c[] = {-0.33333328f, 0.13332719f, -0.05384331f, 0.02096152f, -0.00604540f};
    const F a = magnitude(x), square = x * x;
    const F large = 1.0f - 2.0f / (exp(a + a) + 1.0f);
    return select(square < 0.4f, fma(x * square, polynomial(square, c), x), with_sign_of(large, x));
}

TILEWISE_INLINE F sigmoid(F x) { return 1.0f / (1.0f + exp(-x)); }

TILEWISE_INLINE F gelu(F x) {
    constexpr float root_half = 0.70710678f;
    const F tail = 0.5f * erfc_positive(magnitude(x) * root_half);
    return x * select(x < 0.0f, tail, 1.0f - tail);
}

TILEWISE_INLINE F gelu_tanh(F x) {  // 0.5 x (1 + tanh(u)) = x sigmoid(2 u)
    constexpr float root_two_over_pi = 0.79788456f, cubic = 0.044715f;
    return x * sigmoid(2.0f * root_two_over_pi * fma(cubic * x * x, x, x));
}

TILEWISE_INLINE F clamp(F x, float low, float high) { return limited(x, splat<F>(low), splat<F>(high)); }

TILEWISE_INLINE F hardswish(F x) { return x * (clamp(x + 3.0f, 0.0f, 6.0f) * (1.0f / 6.0f)); }

template <class Function>
TILEWISE_INLINE void change_all(F* values, Index count, Function function) {
    for (Index i = 0; i < count; ++i) values[i] = function(values[i]);
}

// Applies an activation to each vector. Operations that need more than the values leave them as they are.
TILEWISE_INLINE void activate(KernelEpilogueOp op, F* values, Index count) {
    switch (op) {
        case KernelEpilogueOp::relu: return change_all(values, count, [](F x) { return select(x < 0.0f, F{}, x); });
        case KernelEpilogueOp::relu6: return change_all(values, count, [](F x) { return clamp(x, 0.0f, 6.0f); });
        case KernelEpilogueOp::gelu: return change_all(values, count, gelu);
        case KernelEpilogueOp::gelu_tanh: return change_all(values, count, gelu_tanh);
        case KernelEpilogueOp::silu: return change_all(values, count, [](F x) { return x * sigmoid(x); });
        case KernelEpilogueOp::sigmoid: return change_all(values, count, sigmoid);
        case KernelEpilogueOp::tanh: return change_all(values, count, tanh);
        case KernelEpilogueOp::hardswish: return change_all(values, count, hardswish);
        case KernelEpilogueOp::none:
        case KernelEpilogueOp::bias:
        case KernelEpilogueOp::add:
        case KernelEpilogueOp::mul: break;
    }
}

}  // namespace tilewise::cpu
