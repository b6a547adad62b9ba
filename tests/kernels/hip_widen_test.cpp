// SPDX-License-Identifier: MIT
// Matrix units that do not multiply 8-bit floats get them as fp16: every product of two is the same.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>

#include "kernels/common/element.hpp"
#include "kernels/hip/widen.hpp"

namespace tilewise {
namespace {

// All values of a type, through fp16.
template <class T>
std::array<double, 256> widened() {
    std::array<double, 256> values{};
    for (unsigned first = 0; first < 256; first += 16) {
        gpu::Packet<16> bytes{}, halves[2];
        for (unsigned i = 0; i < 16; ++i) bytes.words[i / 4] |= (first + i) << (8 * (i % 4));
        hip::widen<T>(bytes, halves);
        for (unsigned i = 0; i < 16; ++i) {
            // The first and the third of four bytes are a pair, then the second and the fourth.
            const unsigned word = i % 8 / 4 * 2 + i % 2, half = i % 4 / 2;
            const unsigned bits = halves[i / 8].words[word] >> (16 * half) & 0xffffu;
            values[first + i] = decode(KernelDType::fp16, bits);
        }
    }
    return values;
}

template <class A, class B>
void expect_same_products(KernelDType a_type, KernelDType b_type) {
    const auto a = widened<A>();
    const auto b = widened<B>();
    for (unsigned i = 0; i < 256; ++i) {
        for (unsigned j = 0; j < 256; ++j) {
            const double expected = decode(a_type, i) * decode(b_type, j), got = a[i] * b[j];
            ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected))) << i << " x " << j;
        }
    }
}

TEST(HipWiden, EveryProductIsTheSame) {
    expect_same_products<gpu::Fp8, gpu::Fp8>(KernelDType::fp8, KernelDType::fp8);
    expect_same_products<gpu::Bf8, gpu::Bf8>(KernelDType::bf8, KernelDType::bf8);
    expect_same_products<gpu::Fp8, gpu::Bf8>(KernelDType::fp8, KernelDType::bf8);
}

}  // namespace
}  // namespace tilewise
