// SPDX-License-Identifier: MIT
#include "base/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.hpp"

namespace tilewise {
namespace {

using Values = std::vector<double>;

TEST(Statistics, MedianIsTheMiddle) {
    EXPECT_EQ(median(Values{3}), 3);
    EXPECT_EQ(median(Values{5, 1, 3}), 3);
    EXPECT_EQ(median(Values{4, 1, 3, 2}), 2.5);
    EXPECT_TRUE(std::isnan(median(Values{})));
}

TEST(Statistics, QuantilesRunFromTheLeastToTheGreatest) {
    const Values values = {30, 10, 20, 40, 50};
    EXPECT_EQ(quantile(values, 0), 10);
    EXPECT_EQ(quantile(values, 1), 50);
    EXPECT_EQ(quantile(values, 0.25), 20);
    EXPECT_DOUBLE_EQ(quantile(values, 0.1), 14);
    EXPECT_EQ(quantile(values, -3), 10) << "clamped";
    EXPECT_EQ(quantile(values, 3), 50) << "clamped";
    EXPECT_TRUE(std::isnan(quantile(Values{}, 0.5)));
}

TEST(Statistics, QuantilesGrowWithQ) {
    Random random(1);
    for (int i = 0; i < 200; ++i) {
        Values values;
        for (std::int64_t n = random.between(1, 30); n > 0; --n) values.push_back(double(random.between(-50, 50)));
        for (double q = 0.1; q <= 1; q += 0.1) EXPECT_LE(quantile(values, q - 0.1), quantile(values, q));
        const double below =
            double(std::count_if(values.begin(), values.end(), [&](double v) { return v < median(values); }));
        EXPECT_LE(below, double(values.size()) / 2);
    }
}

TEST(Statistics, SpreadIgnoresOutliersAndScale) {
    EXPECT_EQ(relative_spread(Values{2, 2, 2, 2, 1000}), 0);
    EXPECT_NEAR(relative_spread(Values{90, 100, 110, 100, 120}), 0.14826, 1e-9);
    EXPECT_NEAR(relative_spread(Values{9, 10, 11, 10, 12}), 0.14826, 1e-9);
    EXPECT_TRUE(std::isnan(relative_spread(Values{})));
}

TEST(Statistics, SpreadOfNormalNoiseIsItsDeviation) {
    std::mt19937_64 engine(7);
    std::normal_distribution<double> noise(100, 3);
    Values values;
    for (int i = 0; i < 20000; ++i) values.push_back(noise(engine));
    EXPECT_NEAR(relative_spread(values), 0.03, 0.002);
}

TEST(Statistics, GeomeanOfRatios) {
    EXPECT_DOUBLE_EQ(geomean(Values{0.5, 2}), 1);
    EXPECT_NEAR(geomean(Values{1, 10, 100}), 10, 1e-9);
    EXPECT_NEAR(geomean(Values{1e-300, 1e300, 1}), 1, 1e-9) << "no overflow on the way";
    EXPECT_TRUE(std::isnan(geomean(Values{})));
}

}  // namespace
}  // namespace tilewise
