// SPDX-License-Identifier: MIT
// A number that the soft maximum of work.hpp never falls below, and is hardly a hundredth above, for bounds of times: without calls of
// pow, which takes longer than all else in them.
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

// At most soft_max(sharpness, times). Times of 0 or less, and those far below the longest, count for nothing.
inline double soft_max_bound(double sharpness, std::initializer_list<double> times) {
    constexpr double kSlack = 1 - 2e-5, kNegligible = 0.05;
    const double most = std::max(times);
    if (!(most > 0) || std::isinf(most)) return most;
    double sum = 0;
    for (const double time : times) {
        const double share = time / most;
        if (share == 1) {
            sum += 1;
        } else if (share > kNegligible) {
            sum += low_exp2(sharpness * low_log2(share));
        }
    }
    if (sum == 1) return most * kSlack;
    return most * std::max(1.0, low_exp2(low_log2(sum) / sharpness)) * kSlack;
}

}  // namespace tilewise
