// SPDX-License-Identifier: MIT
// The end of every product, element by element: a raw sum becomes
//   D-ops(ops(alpha * scale_a * scale_b * sum + beta * C))
// in fp32, in this order (the CPU kernels and the reference do the same), and then an element of C. Integer results are
// computed in double, which has every 32-bit integer. Kernels call finish in a rolled loop, because all the operations
// together are a lot of code. NaN goes through every operation.
#pragma once
#include "types.hpp"

namespace tilewise::gpu {

// The accurate functions: within a few units in the last place, which fp32 outputs show.
TILEWISE_DEVICE float exp_of(float x) {
#if defined(TILEWISE_ON_GPU)
    return expf(x);
#else
    return __builtin_expf(x);
#endif
}
TILEWISE_DEVICE float tanh_of(float x) {
#if defined(TILEWISE_ON_GPU)
    return tanhf(x);
#else
    return __builtin_tanhf(x);
#endif
}
TILEWISE_DEVICE float erfc_of(float x) {
#if defined(TILEWISE_ON_GPU)
    return erfcf(x);
#else
    return __builtin_erfcf(x);
#endif
}

TILEWISE_DEVICE float sigmoid(float x) { return 1.0f / (1.0f + exp_of(-x)); }
TILEWISE_DEVICE float clamp(float x, float low, float high) {  // keeps NaN
    return x < low ? low : x > high ? high : x;
}

TILEWISE_DEVICE float activate(KernelEpilogueOp op, float x) {
    constexpr float root_half = 0.70710678f, root_two_over_pi = 0.79788456f, cubic = 0.044715f;
    switch (op) {
        case KernelEpilogueOp::relu: return x < 0.0f ? 0.0f : x;
        case KernelEpilogueOp::relu6: return clamp(x, 0.0f, 6.0f);
        case KernelEpilogueOp::gelu: return x * (0.5f * erfc_of(-root_half * x));  // no cancellation for negative x
        case KernelEpilogueOp::gelu_tanh:  // 0.5 x (1 + tanh(u)) = x sigmoid(2 u)
            return x * sigmoid(2.0f * root_two_over_pi * (cubic * x * x * x + x));
        case KernelEpilogueOp::silu: return x * sigmoid(x);
        case KernelEpilogueOp::sigmoid: return sigmoid(x);
        case KernelEpilogueOp::tanh: return tanh_of(x);
        case KernelEpilogueOp::hardswish: return x * (clamp(x + 3.0f, 0.0f, 6.0f) * (1.0f / 6.0f));
        case KernelEpilogueOp::none:
        case KernelEpilogueOp::bias: break;
    }
    return x;
}

// Nothing to do but to multiply by alpha: C is not read, and there is no scale, operation or D tensor.
TILEWISE_DEVICE bool is_plain(const KernelArgs& args) {
    return args.beta == 0.0f && args.scale == KernelScale::none && args.epilogue[0] == KernelEpilogueOp::none &&
           args.d_ops[0] == KernelDOp::none;
}

// Where element (row, col) of a batch entry is, in C and in every D tensor.
TILEWISE_DEVICE Index c_offset(const KernelArgs& args, Index batch, Index row, Index col) {
    const Index at = batch * args.c.batch_stride + col * args.c.col_stride;
    if (args.c_image_rows == 0) return at + row * args.c.row_stride;
    const Index image = row / args.c_image_rows;
    return at + image * args.c_image_stride + (row - image * args.c_image_rows) * args.c.row_stride;
}

// Integer sums stay exact in integer results, unless a step is not.
template <class Sum, class Out>
inline constexpr bool kExact = kSame<Sum, int>&& kSame<Out, Int32>;

template <bool exact>
struct FinishTypes {
    using Real = float;   // of the steps
    using Value = float;  // of a finished element on its way to C
};
template <>
struct FinishTypes<true> {
    using Real = double;
    using Value = int;
};
template <class Sum, class Out>
using RealOf = typename FinishTypes<kExact<Sum, Out>>::Real;
template <class Sum, class Out>
using ValueOf = typename FinishTypes<kExact<Sum, Out>>::Value;

template <class T, class Real = float>
TILEWISE_DEVICE Real read_element(const void* data, Index at) {
    const typename T::Storage element = static_cast<const typename T::Storage*>(data)[at];
    if constexpr (kSame<T, Int32>) {
        return Real(element);
    } else {
        return T::to_float(element);
    }
}

// A raw sum of products made the value of C(row, col). The element must be inside C.
template <class Out, class Sum>
TILEWISE_DEVICE RealOf<Sum, Out> finish_real(const KernelArgs& args, Sum sum, Index batch, Index row, Index col) {
    using Real = RealOf<Sum, Out>;
    float factor = args.alpha;
    if (args.scale == KernelScale::tensor) factor *= args.scale_a[0] * args.scale_b[0];
    Real value = Real(sum) * factor;
    if (args.scale == KernelScale::row) value = value * args.scale_a[row] * args.scale_b[col];
    const Index at = c_offset(args, batch, row, col);
    if (args.beta != 0.0f) value += args.beta * read_element<Out, Real>(args.c.data, at);
    TILEWISE_ROLLED
    for (int i = 0; i < kMaxKernelEpilogueOps && args.epilogue[i] != KernelEpilogueOp::none; ++i) {
        if (args.epilogue[i] == KernelEpilogueOp::bias) {
            value += read_element<Out, Real>(args.bias, batch * args.bias_batch_stride + col);
        } else if (args.epilogue[i] == KernelEpilogueOp::relu) {
            value = value < 0 ? 0 : value;
        } else {
            value = activate(args.epilogue[i], float(value));
        }
    }
    TILEWISE_ROLLED
    for (int i = 0; i < kMaxKernelDTensors && args.d_ops[i] != KernelDOp::none; ++i) {
        const Real d = read_element<Out, Real>(args.d[i], at);
        value = args.d_ops[i] == KernelDOp::add ? value + d : value * d;
    }
    return value;
}
template <class Out, class Sum>
TILEWISE_DEVICE ValueOf<Sum, Out> finish(const KernelArgs& args, Sum sum, Index batch, Index row, Index col) {
    const RealOf<Sum, Out> value = finish_real<Out>(args, sum, batch, row, col);
    if constexpr (kExact<Sum, Out>) {
        return Int32::from_double(value);
    } else {
        return value;
    }
}
// The same where there is nothing to do but to multiply.
template <class Out, class Sum>
TILEWISE_DEVICE ValueOf<Sum, Out> finish_plain(const KernelArgs& args, Sum sum) {
    if constexpr (kExact<Sum, Out>) {
        return args.alpha == 1.0f ? sum : Int32::from_double(double(sum) * args.alpha);
    } else {
        return float(sum) * args.alpha;
    }
}

// Whether that is one operation at most, and then the result: what unrolled code may do for each of its sums.
template <class Out, class Sum>
TILEWISE_DEVICE bool is_simple(const KernelArgs& args) {
    return is_plain(args) && (!kExact<Sum, Out> || args.alpha == 1.0f);
}
template <class Out, class Sum>
TILEWISE_DEVICE ValueOf<Sum, Out> finish_simple(const KernelArgs& args, Sum sum) {
    if constexpr (kExact<Sum, Out>) {
        return sum;
    } else {
        return float(sum) * args.alpha;
    }
}

template <class Out, class Value>
TILEWISE_DEVICE typename Out::Storage element_of(Value value) {
    if constexpr (kSame<Value, int>) {
        return value;  // of Int32
    } else {
        return Out::from_float(value);
    }
}
template <class Out, class Value>
TILEWISE_DEVICE void store(const KernelArgs& args, Value value, Index batch, Index row, Index col) {
    static_cast<typename Out::Storage*>(args.c.data)[c_offset(args, batch, row, col)] = element_of<Out>(value);
}

}  // namespace tilewise::gpu
