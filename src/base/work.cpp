// SPDX-License-Identifier: MIT
#include "base/work.hpp"

#include <cassert>

#include "base/work_parts.hpp"

namespace tilewise {
namespace {

thread_local Work* recorded_work = nullptr;

// Far below the longest, a time adds less to a soft maximum than any prediction is good for.
constexpr double kNegligible = 1e-3;

double soft_max_of(double exponent, const double* times, std::size_t count) {
    const double most = *std::max_element(times, times + count);
    if (most <= 0 || std::isinf(most)) return most;
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (times[i] > kNegligible * most) sum += std::pow(times[i], exponent);
    }
    return std::pow(sum, 1 / exponent);
}

double overlap_of(double share, const double* times, std::size_t count) {
    double most = times[0], others = 0;
    for (std::size_t i = 1; i < count; ++i) {
        others += std::min(most, times[i]);
        most = std::max(most, times[i]);
    }
    return most + share * others;
}

constexpr std::size_t kMostOperands = std::tuple_size_v<decltype(WorkNode::operands)>;
using Operands = std::array<double, kMostOperands>;

Operands operands_of(const WorkNode& node, const std::vector<double>& values) {
    Operands operands{};
    for (std::size_t i = 0; i < node.operand_count; ++i) operands[i] = values[node.operands[i]];
    return operands;
}

double value_of(const WorkNode& node, const Operands& x) {
    const std::size_t count = node.operand_count;
    switch (node.form) {
        case WorkForm::count: return node.count;
        case WorkForm::price: return *node.price;
        case WorkForm::sum: {
            double sum = 0;
            for (std::size_t i = 0; i < count; ++i) sum += x[i];
            return sum;
        }
        case WorkForm::product: return x[0] * x[1];
        case WorkForm::quotient: return x[0] / x[1];
        case WorkForm::power: return std::pow(x[0], x[1]);
        case WorkForm::longest: return *std::max_element(x.begin(), x.begin() + count);
        case WorkForm::shortest: return *std::min_element(x.begin(), x.begin() + count);
        case WorkForm::soft_max: return soft_max_of(x[0], &x[1], count - 1);
        case WorkForm::overlap: return overlap_of(x[0], &x[1], count - 1);
    }
    return 0;
}

// By the operands of a soft maximum: s = (sum of t^e)^(1/e).
void soft_max_slopes(const Operands& x, std::size_t count, double value, Operands& slopes) {
    const double e = x[0];
    if (value <= 0 || std::isinf(value)) return;
    double sum = 0, logs = 0;
    for (std::size_t i = 1; i < count; ++i) {
        if (x[i] <= 0) continue;
        const double share = x[i] / value, raised = std::pow(share, e);
        slopes[i] = raised / share;
        sum += raised, logs += raised * std::log(share);
    }
    slopes[0] = value * (logs / (sum * e) - std::log(sum) / (e * e));
}

// By each operand.
Operands slopes_of(const WorkNode& node, const Operands& x, double value) {
    Operands slopes{};
    const std::size_t count = node.operand_count;
    const auto longest = [&](std::size_t from) {
        return static_cast<std::size_t>(std::max_element(x.begin() + from, x.begin() + count) - x.begin());
    };
    switch (node.form) {
        case WorkForm::count:
        case WorkForm::price: break;
        case WorkForm::sum: slopes.fill(1); break;
        case WorkForm::product: slopes = {x[1], x[0]}; break;
        case WorkForm::quotient: slopes = {1 / x[1], -value / x[1]}; break;
        case WorkForm::power:
            slopes = {x[0] == 0 ? 0 : x[1] * value / x[0], x[0] > 0 ? value * std::log(x[0]) : 0};
            break;
        case WorkForm::longest: slopes[longest(0)] = 1; break;
        case WorkForm::shortest:
            slopes[static_cast<std::size_t>(std::min_element(x.begin(), x.begin() + count) - x.begin())] = 1;
            break;
        case WorkForm::soft_max: soft_max_slopes(x, count, value, slopes); break;
        case WorkForm::overlap: {
            slopes.fill(x[0]);
            slopes[longest(1)] = 1;
            slopes[0] = -x[longest(1)];
            for (std::size_t i = 1; i < count; ++i) slopes[0] += x[i];
            break;
        }
    }
    return slopes;
}

}  // namespace

double soft_max(double exponent, std::initializer_list<double> times) {
    return soft_max_of(exponent, times.begin(), times.size());
}

double overlap(double share, std::initializer_list<double> times) {
    return overlap_of(share, times.begin(), times.size());
}

constinit thread_local WorkParts* work_parts::noted_parts = nullptr;

namespace {

std::array<double, kMostOperands> plain(std::initializer_list<Noted> times) {
    assert(times.size() <= kMostOperands);
    std::array<double, kMostOperands> numbers{};
    std::transform(times.begin(), times.end(), numbers.begin(), [](const Noted& time) { return time.value; });
    return numbers;
}

}  // namespace

Noted soft_max(Noted exponent, std::initializer_list<Noted> times) {
    return {soft_max_of(exponent.value, plain(times).data(), times.size())};
}

Noted overlap(Noted share, std::initializer_list<Noted> times) {
    return {overlap_of(share.value, plain(times).data(), times.size())};
}

void evaluate(const Work& work, std::vector<double>& values) {
    values.resize(work.nodes.size());
    for (std::size_t i = 0; i < work.nodes.size(); ++i) {
        values[i] = value_of(work.nodes[i], operands_of(work.nodes[i], values));
    }
}

double evaluate(const Work& work) {
    std::vector<double> values;
    evaluate(work, values);
    return values.empty() ? 0 : values.back();
}

void each_derivative(const Work& work, const std::vector<double>& values,
                     const std::function<void(const double*, double)>& tell) {
    if (work.nodes.empty()) return;
    std::vector<double> slope(work.nodes.size());  // of the whole, by each node
    slope.back() = 1;
    for (std::size_t i = work.nodes.size(); i-- > 0;) {
        const WorkNode& node = work.nodes[i];
        if (slope[i] == 0) continue;
        if (node.form == WorkForm::price) tell(node.price, slope[i]);
        if (node.operand_count == 0) continue;
        const Operands by = slopes_of(node, operands_of(node, values), values[i]);
        for (std::size_t j = 0; j < node.operand_count; ++j) slope[node.operands[j]] += slope[i] * by[j];
    }
}

Term::Term(const WorkNode& node) : node_(0) {
    assert(recorded_work);
    recorded_work->nodes.push_back(node);
    node_ = static_cast<std::uint16_t>(recorded_work->nodes.size() - 1);
}

Term::Term(double count) : Term(of_count("", count)) {}
Term::Term(const Price& price) : Term(of_price(price.value)) {}

Term::Term(WorkForm form, std::span<const Term> operands)
    : Term([&] {
          assert(operands.size() <= kMostOperands);
          WorkNode node;
          node.form = form;
          for (const Term& operand : operands) node.operands[node.operand_count++] = operand.node_;
          return node;
      }()) {}

Term Term::of_count(const WorkName& name, double count) {
    WorkNode node;
    node.count = count, node.name = name.text;
    return Term(node);
}

Term Term::of_price(const double& price) {
    WorkNode node;
    node.form = WorkForm::price, node.price = &price;
    return Term(node);
}

Term Term::named(std::string_view name) const {
    WorkNode& node = recorded_work->nodes[node_];
    if (!node.name.empty() || node.operand_count == 0) return Term(WorkForm::sum, std::span(this, 1)).named(name);
    node.name = name;
    return *this;
}

void Term::finish() const { recorded_work->nodes.resize(std::size_t{node_} + 1); }

namespace {

Term combined(WorkForm form, std::initializer_list<Term> operands) { return {form, std::span(operands)}; }

// Makes a node whose first operand says how the others meet.
Term combined(WorkForm form, Term how, std::initializer_list<Term> times) {
    std::vector<Term> operands = {how};
    operands.insert(operands.end(), times);
    return {form, std::span<const Term>(operands)};
}

}  // namespace

Term operator+(Term a, Term b) { return combined(WorkForm::sum, {a, b}); }
Term operator-(Term a, Term b) { return a + Term(-1.0) * b; }
Term operator*(Term a, Term b) { return combined(WorkForm::product, {a, b}); }
Term operator/(Term a, Term b) { return combined(WorkForm::quotient, {a, b}); }
Term longest(std::initializer_list<Term> times) { return combined(WorkForm::longest, times); }
Term shortest(std::initializer_list<Term> times) { return combined(WorkForm::shortest, times); }
Term power(Term base, Term exponent) { return combined(WorkForm::power, {base, exponent}); }
Term soft_max(Term exponent, std::initializer_list<Term> times) {
    return combined(WorkForm::soft_max, exponent, times);
}
Term overlap(Term share, std::initializer_list<Term> times) { return combined(WorkForm::overlap, share, times); }

WorkRecording::WorkRecording(Work& into) { recorded_work = &into; }
WorkRecording::~WorkRecording() { recorded_work = nullptr; }

}  // namespace tilewise
