// SPDX-License-Identifier: MIT
#include "base/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace tilewise {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

// The standard deviation of a normal distribution is this many median absolute deviations.
constexpr double kDeviationsPerMad = 1.4826;

}  // namespace

double median(std::span<const double> values) { return quantile(values, 0.5); }

double quantile(std::span<const double> values, double q) {
    if (values.empty()) return kNothing;
    std::vector<double> sorted(values.begin(), values.end());
    std::sort(sorted.begin(), sorted.end());
    const double at = std::clamp(q, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    const double share = at - static_cast<double>(below);
    // Not a + share * (b - a): two equal infinities would give NaN.
    return share == 0 ? sorted[below] : sorted[below] * (1 - share) + sorted[above] * share;
}

double relative_spread(std::span<const double> values) {
    if (values.empty()) return kNothing;
    const double middle = median(values);
    std::vector<double> distances;
    distances.reserve(values.size());
    for (const double value : values) distances.push_back(std::abs(value - middle));
    const double distance = median(distances);
    return distance == 0 ? 0 : kDeviationsPerMad * distance / std::abs(middle);
}

double geomean(std::span<const double> values) {
    if (values.empty()) return kNothing;
    double logs = 0;
    for (const double value : values) logs += std::log(value);
    return std::exp(logs / static_cast<double>(values.size()));
}

}  // namespace tilewise
