// SPDX-License-Identifier: MIT
// A fourth kind of number for work (base/work.hpp): a double whose soft maximum is a bound of it, so that a time made of it is one that the
// prediction never falls below, without most of its cost. Sums may have no negative terms but those that `longest` takes back.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "base/soft_max_bound.hpp"
#include "base/work.hpp"

namespace tilewise {

struct Least {
    double value;

    Least(double number) : value(number) {}  // NOLINT: a number among bounds is a count
    explicit Least(const Price& price) : value(price.value) {}
    explicit operator double() const { return value; }

    static Least of_count(const WorkName&, double count) { return {count}; }
    static Least of_price(const double& price) { return {price}; }
};

inline Least operator+(Least a, Least b) { return {a.value + b.value}; }
inline Least operator-(Least a, Least b) { return {a.value - b.value}; }
inline Least operator*(Least a, Least b) { return {a.value * b.value}; }
inline Least operator/(Least a, Least b) { return {a.value / b.value}; }

inline Least named(const WorkName&, Least number) { return number; }

inline Least longest(std::initializer_list<Least> times) {
    double most = times.begin()->value;
    for (const Least& time : times) most = std::max(most, time.value);
    return {most};
}
// The share is not negative, nor is the exponent.
inline Least power(Least share, Least exponent) {
    return share.value > 0 ? Least(low_exp2(exponent.value * low_log2(share.value))) : share;
}
inline Least soft_max(Least sharpness, std::initializer_list<Least> times) {
    return {soft_max_bound(sharpness.value, times)};
}

}  // namespace tilewise
