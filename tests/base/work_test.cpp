// SPDX-License-Identifier: MIT
// Work: the same function gives a time, and the tree that leads to it, which can be evaluated for other prices.
#include "base/work.hpp"

#include <gtest/gtest.h>

#include <map>

namespace tilewise {
namespace {

struct Group {
    Price each{2}, start{5}, share{0.3}, sharpness{3}, rate{7}, most{100};
};

// All forms, one number used twice.
template <class N>
N some_work(const Group& price, double count) {
    const N each = term<N>("each", count, price.each);
    const N load = named("load", counted<N>("bytes", 50) / N(price.rate));
    const N both = soft_max(N(price.sharpness), {each, load, N(price.start)});
    const N part = overlap(N(price.share), {both, load - N(price.each)});
    return part + shortest({N(price.most), power(N(count), N(price.share))}) + longest({load, N(0.5)}) * 3 +
           N(price.start);
}

Work recorded(const Group& price, double count) {
    Work work;
    const WorkRecording recording(work);
    const Term whole = some_work<Term>(price, count);
    static_cast<void>(Term(17.0) * whole);  // recorded later: no part of it
    whole.finish();
    return work;
}

TEST(Work, TheTreeGivesTheTime) {
    Group price;
    for (const double count : {0.0, 1.0, 3.5, 80.0}) {
        EXPECT_DOUBLE_EQ(evaluate(recorded(price, count)), some_work<double>(price, count)) << count;
    }
}

TEST(Work, FollowsPricesThatChangeLater) {
    Group price;
    const Work work = recorded(price, 4);
    price.each.value = 9, price.rate.value = 2;
    EXPECT_DOUBLE_EQ(evaluate(work), some_work<double>(price, 4));
}

TEST(Work, DerivativesAreThoseOfSmallSteps) {
    for (const double count : {1.0, 3.5, 80.0}) {
        Group price;
        const Work work = recorded(price, count);
        std::vector<double> values;
        evaluate(work, values);
        std::map<const double*, double> slopes;
        each_derivative(work, values, [&](const double* of, double slope) { slopes[of] += slope; });
        for (Price* each : {&price.each, &price.start, &price.share, &price.sharpness, &price.rate, &price.most}) {
            const double value = each->value, step = 1e-6 * value;
            each->value = value + step;
            const double above = evaluate(work);
            each->value = value - step;
            const double below = evaluate(work);
            each->value = value;
            EXPECT_NEAR(slopes[&each->value], (above - below) / (2 * step), 1e-4) << count << " " << value;
        }
    }
}

TEST(Work, FormsAreWhatTheySay) {
    EXPECT_DOUBLE_EQ(overlap(0.1, {3, 20, 4}), 20.7);
    EXPECT_DOUBLE_EQ(soft_max(2, {3, 4}), 5);
    EXPECT_DOUBLE_EQ(soft_max(2, {4, 4}), 4 * std::sqrt(2.0));
    EXPECT_DOUBLE_EQ(soft_max(4, {0, 0}), 0);
    EXPECT_NEAR(soft_max(2.5, {1e-4, 1}), 1, 1e-9);
}

TEST(Work, NamesStayWithTheirParts) {
    Group price;
    std::map<std::string_view, int> names;
    for (const WorkNode& node : recorded(price, 4).nodes) ++names[node.name];
    EXPECT_EQ(names["each"], 1);
    EXPECT_EQ(names["load"], 1);
    EXPECT_EQ(names["bytes"], 1);
}

}  // namespace
}  // namespace tilewise
