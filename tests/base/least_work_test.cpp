// SPDX-License-Identifier: MIT
#include "base/least_work.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.hpp"

namespace tilewise {
namespace {

// A time as families write them down: parts that overlap, a share of what they take, and what nothing hides.
template <class N>
N time_of(double compute, double memory, double share, const Price& fixed) {
    const N crowded = N(memory) * power(N(share), N(1.58));
    return soft_max(N(2.6), {counted<N>("compute", compute), named("memory", crowded), N(0.0)}) / N(2.0) +
           longest({N(fixed), N(share)});
}

TEST(LeastWork, IsBelowAndNear) {
    Random random(43);
    for (int i = 0; i < 5000; ++i) {
        const auto size = [&] { return std::exp2(static_cast<double>(random.between(-4000, 8000)) / 1000); };
        const double compute = size(), memory = size(), share = static_cast<double>(random.between(1, 1000)) / 1000;
        const Price fixed{size()};
        const auto exact = time_of<double>(compute, memory, share, fixed);
        const auto least = static_cast<double>(time_of<Least>(compute, memory, share, fixed));
        ASSERT_LE(least, exact) << compute << " " << memory << " " << share << " " << fixed.value;
        ASSERT_GE(least, exact * 0.9) << compute << " " << memory << " " << share << " " << fixed.value;
    }
}

}  // namespace
}  // namespace tilewise
