// SPDX-License-Identifier: MIT
#include "base/soft_max_bound.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "base/work.hpp"

namespace tilewise {
namespace {

TEST(SoftMaxBound, IsBelowAndNear) {
    Random random(41);
    for (int i = 0; i < 20000; ++i) {
        const auto time = [&] { return std::exp2(static_cast<double>(random.between(-8000, 8000)) / 1000); };
        const double sharpness = 1.5 + static_cast<double>(random.between(0, 6000)) / 1000;
        const double a = time(), b = a * time() / 16, c = random.chance(20) ? 0 : time();
        const double exact = soft_max(sharpness, {a, b, c}), bound = soft_max_bound(sharpness, {a, b, c});
        ASSERT_LE(bound, exact) << sharpness << " " << a << " " << b << " " << c;
        ASSERT_GE(bound, exact * 0.8) << sharpness << " " << a << " " << b << " " << c;
    }
    for (double x = 0.001; x < 8; x *= 1.0003) {
        ASSERT_LE(low_log2(x), std::log2(x)) << x;
        ASSERT_LE(low_exp2(4 - x), std::exp2(4 - x)) << x;
        ASSERT_GE(low_log2(x), std::log2(x) - 0.016) << x;
        ASSERT_GE(low_exp2(4 - x), std::exp2(4 - x) * 0.994) << x;
    }
}

}  // namespace
}  // namespace tilewise
