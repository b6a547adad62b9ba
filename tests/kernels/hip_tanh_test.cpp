// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/hip/tanh.hpp"

namespace tilewise {
namespace {

// kernels/common/tolerance.hpp allows activations 16 units of |x| 2^-24.
TEST(HipTanh, IsWithinAFewUnits) {
    for (double size = 1e-30; size < 100; size *= 1.0003) {
        for (const double sign : {-1.0, 1.0}) {
            const auto x = static_cast<float>(sign * size);
            const double error = std::abs(double{gpu::tanh_by_powers(x)} - std::tanh(double{x}));
            ASSERT_LE(error, 6 * std::abs(double{x}) * 0x1p-24) << x;
        }
    }
}

TEST(HipTanh, EndsAreExact) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(gpu::tanh_by_powers(infinity), 1.0f);
    EXPECT_EQ(gpu::tanh_by_powers(-infinity), -1.0f);
    EXPECT_EQ(gpu::tanh_by_powers(0.0f), 0.0f);
    EXPECT_TRUE(std::isnan(gpu::tanh_by_powers(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace tilewise
