// SPDX-License-Identifier: MIT
// A number that the soft maximum of work.hpp never falls below, and is not far above, for bounds of times: without calls of pow, which takes
// longer than all else in them.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>

namespace tilewise {

// Of a positive, finite number: a parabola over its mantissa, less by 0 to 0.016.
inline double low_log2(double x) {
    constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 52) - 1, kOne = std::uint64_t{1023} << 52;
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const auto exponent = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
    const double f = std::bit_cast<double>((bits & kMantissa) | kOne) - 1;  // 0 to 1
    constexpr double kSlope = 1.333, kMostAbove = 0.0053;
    return exponent + f * (kSlope - (kSlope - 1) * f) - kMostAbove;
}

// Of -1000 to 1000: the same, relatively less by 0 to 0.006.
inline double low_exp2(double x) {
    auto whole = static_cast<std::int64_t>(x);
    if (static_cast<double>(whole) > x) --whole;
    const double f = x - static_cast<double>(whole);
    constexpr double kSlope = 0.6665, kMostAbove = 1.0034;
    return (1 + f * (kSlope + (1 - kSlope) * f)) / kMostAbove *
           std::bit_cast<double>(static_cast<std::uint64_t>(whole + 1023) << 52);
}

// At most soft_max(sharpness, times), which falls with the sharpness: that is rounded up to a whole power. Times of 0 or less count for
// nothing.
template <class Number>
[[gnu::always_inline]] inline double soft_max_bound(double sharpness, std::initializer_list<Number> times) {
    constexpr double kSlack = 1 - 2e-5;
    double most = 0;
    for (const Number& time : times) most = std::max(most, static_cast<double>(time));
    if (!(most > 0) || std::isinf(most)) return most;
    const int power = static_cast<int>(sharpness) + 1;
    const double per_most = 1 / most;
    double sum = 0;
    for (const Number& time : times) {
        const double share = std::max(0.0, static_cast<double>(time) * per_most);
        double raised = share;
        for (int i = 1; i < power; ++i) raised *= share;
        sum += raised;
    }
    return most * std::max(1.0, low_exp2(low_log2(sum) / power)) * kSlack;
}

}  // namespace tilewise
