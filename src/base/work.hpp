// SPDX-License-Identifier: MIT
// The work of a launch: counts of what it does, and what each costs on a chip, combined by a few forms into a time. Work is written
// down once, as a function template over a kind of number: with double it gives the time and nothing else, with Term it records the
// tree that leads to it, which can be shown, and evaluated again for other prices.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/work_name.hpp"

namespace tilewise {

// A number of a chip file. It takes a word to make a plain number of it, so that no price is lost in a count.
struct Price {
    double value = 0;

    explicit operator double() const { return value; }
    bool operator==(const Price&) const = default;
};

// How a node of the tree follows from its operands. `soft_max` is about the longest, and a little more the closer the others are: its
// first operand says how sharply. `overlap` is the longest and a share, its first operand, of all others.
enum class WorkForm : std::uint8_t {
    count,
    price,
    sum,
    product,
    quotient,
    power,
    longest,
    shortest,
    soft_max,
    overlap
};

struct WorkNode {
    WorkForm form = WorkForm::count;
    std::uint8_t operand_count = 0;
    std::array<std::uint16_t, 6> operands{};  // indices of nodes before it
    double count = 0;
    const double* price = nullptr;  // read whenever the work is evaluated
    std::string_view name{};        // a literal, or empty

    bool operator==(const WorkNode&) const = default;
};

struct Work {
    std::vector<WorkNode>
        nodes;  // the last is the whole; prices belong to the arch that it was made for, which outlives it

    bool operator==(const Work&) const = default;
};

double evaluate(const Work& work);
// The value of every node.
void evaluate(const Work& work, std::vector<double>& values);
// How much the whole, evaluated to these values, changes with each of its prices; one that is used twice is told twice.
void each_derivative(const Work& work, const std::vector<double>& values,
                     const std::function<void(const double* price, double derivative)>& tell);

// A number that is recorded: a node of the work that this thread is recording.
class Term {
public:
    Term(double count);  // NOLINT: a number among terms is a count
    explicit Term(const Price& price);
    Term(WorkForm form, std::span<const Term> operands);

    static Term of_count(const WorkName& name, double count);
    static Term of_price(const double& price);
    Term named(std::string_view name) const;
    // Makes this the whole of the work: what was recorded later is no part of it.
    void finish() const;

private:
    explicit Term(const WorkNode& node);

    std::uint16_t node_;
};

Term operator+(Term a, Term b);
Term operator-(Term a, Term b);
Term operator*(Term a, Term b);
Term operator/(Term a, Term b);

// The work that terms of this thread belong to, while this lives.
class WorkRecording {
public:
    explicit WorkRecording(Work& into);
    ~WorkRecording();
    WorkRecording(const WorkRecording&) = delete;
    WorkRecording& operator=(const WorkRecording&) = delete;
};

// The forms, for both kinds of number.

inline double longest(std::initializer_list<double> times) { return std::max(times); }
inline double shortest(std::initializer_list<double> times) { return std::min(times); }
inline double power(double base, double exponent) { return std::pow(base, exponent); }
double soft_max(double exponent, std::initializer_list<double> times);
double overlap(double share, std::initializer_list<double> times);

Term longest(std::initializer_list<Term> times);
Term shortest(std::initializer_list<Term> times);
Term power(Term base, Term exponent);
Term soft_max(Term exponent, std::initializer_list<Term> times);
Term overlap(Term share, std::initializer_list<Term> times);

// A part with a name. Where only the time is asked for, names cost nothing.
inline double named(const WorkName&, double number) { return number; }
inline Term named(const WorkName& name, Term number) { return number.named(name.text); }

template <class N>
N counted(const WorkName& name, double count) {
    if constexpr (std::is_same_v<N, double>) {
        return count;
    } else {
        return N::of_count(name, count);
    }
}

// So many of something, each at a price.
template <class N>
N term(const WorkName& name, double count, const Price& price) {
    return named(name, N(count) * N(price));
}

// A rate of the chip that is no price of a family.
template <class N>
N rate(const double& value) {
    if constexpr (std::is_same_v<N, double>) {
        return value;
    } else {
        return N::of_price(value);
    }
}
template <class N>
N rate(const double&&) = delete;

// Microseconds of bytes at so many GB/s.
template <class N>
N bytes_us(const WorkName& name, double bytes, N gbps) {
    return named(name, N(bytes) / (gbps * 1e3));
}

}  // namespace tilewise
