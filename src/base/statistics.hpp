// SPDX-License-Identifier: MIT
// Robust summaries of measurements: the middle, how far the rest lies from it, and the mean of ratios. All of them
// answer NaN for no values, so that a missing measurement cannot pass for a good one.
#pragma once

#include <span>

namespace tilewise {

double median(std::span<const double> values);
double quantile(std::span<const double> values, double q);  // 0 the least, 1 the greatest, linear in between

// The median distance from the median, as a share of the median and scaled to agree with the standard deviation of
// normal noise. A few outliers do not move it.
double relative_spread(std::span<const double> values);

double geomean(std::span<const double> values);  // of positive values

}  // namespace tilewise
