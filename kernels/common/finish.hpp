// SPDX-License-Identifier: MIT
// These steps follow the sum of products, in the order that args.hpp defines, with a bound of the error:
//   ops( alpha * scale_a * scale_b * sum [+ beta*C] )
// The reference on the host and the one on a GPU both finish their sums here; the kernels they judge have code of their
// own.
#pragma once
#include "tolerance.hpp"

namespace tilewise {

// Every element takes these steps.
struct FinishSteps {
    float alpha = 1;
    float beta = 0;  // 0: C is not read
    KernelScale scale = KernelScale::none;
    KernelEpilogueOp ops[kMaxKernelEpilogueOps] = {};  // filled up with none, as in KernelArgs
};

// With what, for one element; only what the steps need counts.
struct FinishTerms {
    double scale_a = 1, scale_b = 1;
    double c = 0, bias = 0;
    double d[kMaxKernelDTensors] = {};
};

inline Bounded finished(const FinishSteps& steps, const FinishTerms& terms, Bounded sum) {
    double factor = static_cast<double>(steps.alpha);
    int roundings = 2;  // the product, and an integer sum made a float
    if (steps.scale != KernelScale::none) {
        factor = factor * terms.scale_a * terms.scale_b;
        roundings += 2;
    }
    Bounded x = times(sum, factor, roundings);
    if (steps.beta != 0) x = plus(x, static_cast<double>(steps.beta) * terms.c);
    for (int i = 0, d = 0; i < kMaxKernelEpilogueOps && steps.ops[i] != KernelEpilogueOp::none; ++i) {
        switch (steps.ops[i]) {
            case KernelEpilogueOp::bias: x = plus(x, terms.bias); break;
            case KernelEpilogueOp::add: x = plus(x, terms.d[d++]); break;
            case KernelEpilogueOp::mul: x = times(x, terms.d[d++], 1); break;
            default: x = apply(steps.ops[i], x);
        }
    }
    return x;
}

}  // namespace tilewise
