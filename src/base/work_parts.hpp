// SPDX-License-Identifier: MIT
// A third kind of number for work (base/work.hpp): a double that leaves behind what the parts of a time are that most families have, by
// the names that they give them. It takes hardly longer than the time alone, and allocates nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>

#include "base/work.hpp"
#include "base/work_name.hpp"

namespace tilewise {

// The largest number of each part, in whatever unit its family counts it; 0 where a family names none.
using WorkParts = std::array<double, kWorkPartCount>;

namespace work_parts {

extern constinit thread_local WorkParts* noted_parts;  // of this thread, never null while a Noted is made

inline void note(const WorkName& name, double value) {
    if (name.part < kWorkPartCount) (*noted_parts)[name.part] = std::max((*noted_parts)[name.part], value);
}

}  // namespace work_parts

struct Noted {
    double value;

    Noted(double number) : value(number) {}  // NOLINT: a number among parts is a count
    explicit Noted(const Price& price) : value(price.value) {}

    static Noted of_count(const WorkName& name, double count) {
        work_parts::note(name, count);
        return {count};
    }
    static Noted of_price(const double& price) { return {price}; }
};

// Where the parts of this thread go while this lives.
class NotedParts {
public:
    explicit NotedParts(WorkParts& into) {
        into.fill(0);
        work_parts::noted_parts = &into;
    }
    ~NotedParts() { work_parts::noted_parts = nullptr; }
    NotedParts(const NotedParts&) = delete;
    NotedParts& operator=(const NotedParts&) = delete;
};

inline Noted operator+(Noted a, Noted b) { return {a.value + b.value}; }
inline Noted operator-(Noted a, Noted b) { return {a.value - b.value}; }
inline Noted operator*(Noted a, Noted b) { return {a.value * b.value}; }
inline Noted operator/(Noted a, Noted b) { return {a.value / b.value}; }

inline Noted named(const WorkName& name, Noted part) {
    work_parts::note(name, part.value);
    return part;
}

inline Noted longest(std::initializer_list<Noted> times) {
    double most = times.begin()->value;
    for (const Noted& time : times) most = std::max(most, time.value);
    return {most};
}
inline Noted shortest(std::initializer_list<Noted> times) {
    double least = times.begin()->value;
    for (const Noted& time : times) least = std::min(least, time.value);
    return {least};
}
inline Noted power(Noted base, Noted exponent) { return {std::pow(base.value, exponent.value)}; }
Noted soft_max(Noted exponent, std::initializer_list<Noted> times);
Noted overlap(Noted share, std::initializer_list<Noted> times);

}  // namespace tilewise
