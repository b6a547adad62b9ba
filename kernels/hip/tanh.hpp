// SPDX-License-Identifier: MIT
// The hyperbolic tangent in fp32 by a power and a reciprocal: clang has no library to call on an AMD GPU. Near zero, where their
// difference would lose bits, by a polynomial. Its error is a few units of |x| 2^-24. Host-compilable: it is tested there.
#pragma once
#include "../gpu/types.hpp"

namespace tilewise::gpu {

TILEWISE_DEVICE float tanh_by_powers(float x) {
    constexpr float two_log2_e = 2.88539008f, near_zero = 0.5f;
    const float square = x * x;
    if (square < near_zero * near_zero) {
        constexpr float c1 = -0.333333333f, c2 = 0.133333333f, c3 = -0.0539682540f, c4 = 0.0218694885f,
                        c5 = -0.00886323553f, c6 = 0.00359212804f;
        return x + x * square * (c1 + square * (c2 + square * (c3 + square * (c4 + square * (c5 + square * c6)))));
    }
    return 1.0f - 2.0f * reciprocal_of(1.0f + exp2_of(two_log2_e * x));
}

}  // namespace tilewise::gpu
