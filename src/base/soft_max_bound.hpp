// SPDX-License-Identifier: MIT
// A number that the soft maximum of work.hpp never falls below, and is not far above, for bounds of times: without calls of pow, which
// takes longer than all else in them.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>

namespace tilewise {

// Positive and finite, within 1e-6 of 0.
inline double rough_log2(double x) {
    constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 52) - 1, kOne = std::uint64_t{1023} << 52;
    const auto bits = std::bit_cast<std::uint64_t>(x);
    auto exponent = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
    auto mantissa = std::bit_cast<double>((bits & kMantissa) | kOne);  // 1 to 2
    constexpr double kRootOfTwo = 1.4142135623730951, kTwoOverLog = 2.8853900817779268;
    if (mantissa > kRootOfTwo) mantissa *= 0.5, exponent += 1;
    // The series of the inverse hyperbolic tangent.
    const double s = (mantissa - 1) / (mantissa + 1), s2 = s * s;
    return exponent + kTwoOverLog * s * (1 + s2 * (1.0 / 3 + s2 * (1.0 / 5 + s2 * (1.0 / 7))));
}

// Of -1000 to 1000, relatively within 3e-6.
inline double rough_exp2(double x) {
    const auto whole = static_cast<double>(static_cast<std::int64_t>(x + (x < 0 ? -0.5 : 0.5)));
    constexpr double kLog = 0.69314718055994531;
    const double f = (x - whole) * kLog;  // at most 0.35 either way
    const double series = 1 + f * (1 + f * (1.0 / 2 + f * (1.0 / 6 + f * (1.0 / 24 + f * (1.0 / 120)))));
    return series * std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<std::int64_t>(whole) + 1023) << 52);
}

// At most soft_max(sharpness, times): less by a few parts in 100,000. Times of 0 or less count for nothing.
inline double soft_max_bound(double sharpness, std::initializer_list<double> times) {
    constexpr double kSlack = 1 - 2e-5, kNegligible = 2e-3;
    const double most = std::max(times);
    if (!(most > 0) || std::isinf(most)) return most;
    double sum = 0;
    for (const double time : times) {
        const double share = time / most;
        if (share == 1) {
            sum += 1;
        } else if (share > kNegligible) {
            sum += rough_exp2(sharpness * rough_log2(share));
        }
    }
    return sum == 1 ? most * kSlack : most * rough_exp2(rough_log2(sum) / sharpness) * kSlack;
}

}  // namespace tilewise
