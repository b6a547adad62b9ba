// SPDX-License-Identifier: MIT
#include "measure/tolerance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "measure/element.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

constexpr double kUnit = 0x1p-24;
constexpr double kSmallestNormal = 0x1p-126;

// See tolerance.hpp.
constexpr double kGrowth = 2;
constexpr double kExtraSteps = 2;
constexpr double kFunctionUnits = 16;
constexpr double kFastUnit = 0x1p-13;
constexpr double kFastStep = 32;
constexpr double kTf32Unit = 0x1p-10;
constexpr double kTf32x3Unit = 0x1p-19;
constexpr double kHoeffding = 6 * std::numbers::sqrt2;

double grown(double steps) { return std::min(steps, kGrowth * std::sqrt(steps)) + kExtraSteps; }

bool is_float32(double value) { return rounded_to(DType::fp32, value) == value; }

// An infinity is an infinity in any precision; there is nothing to bound.
Bounded settled(double value, double error) { return {value, std::isfinite(value) ? error : 0}; }

double gelu_tanh(double x) {
    const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
    return 0.5 * x * (1 + std::tanh(inner));
}

struct Function {
    double value;
    double slope;   // the steepest, anywhere
    double rounds;  // what the function's own error is relative to
};

Function evaluate(EpilogueOp op, double x) {
    switch (op) {
        case EpilogueOp::bias: break;
        // Written so that NaN passes through.
        case EpilogueOp::relu: return {x < 0 ? 0 : x, 1, 0};
        case EpilogueOp::relu6: return {x < 0 ? 0 : x > 6 ? 6 : x, 1, 0};
        case EpilogueOp::gelu: return {0.5 * x * std::erfc(-x / std::numbers::sqrt2), 1.13, std::abs(x)};
        case EpilogueOp::gelu_tanh: return {gelu_tanh(x), 1.13, std::abs(x)};
        case EpilogueOp::silu: return {x / (1 + std::exp(-x)), 1.1, std::abs(x)};
        case EpilogueOp::sigmoid: return {1 / (1 + std::exp(-x)), 0.25, 1};
        case EpilogueOp::tanh: return {std::tanh(x), 1, 1};
        case EpilogueOp::hardswish: {
            const double ramp = x + 3 < 0 ? 0 : x + 3 > 6 ? 6 : x + 3;
            return {x * ramp / 6, 1.5, std::abs(x)};
        }
    }
    return {x, 1, 0};
}

}  // namespace

ErrorModel error_model(const Problem& p, int split_k) {
    if (p.dtype_a == DType::int8) return {};
    const auto depth = static_cast<double>(gemm_view(p).k);
    const bool split_inputs = p.math == Math::tf32x3;  // each product is three
    const double steps = (split_inputs ? 3 * depth : depth) + split_k;
    ErrorModel model;
    model.relative = kUnit * grown(steps);
    model.floor = depth * kSmallestNormal;
    if (p.math == Math::tf32) model.input_unit = kTf32Unit;
    if (split_inputs) model.input_unit = kTf32x3Unit;
    if (p.math == Math::fast && is_8bit_float(p.dtype_a)) {
        model.relative += kFastUnit * grown(std::ceil(depth / kFastStep));
    }
    return model;
}

Bounded accumulated(const ErrorModel& model, double sum, double magnitude, double squares) {
    const double surely = 2 * magnitude;
    const double likely = kHoeffding * std::sqrt(squares) + 2 * std::abs(sum);
    return settled(sum, model.relative * magnitude + model.input_unit * std::min(surely, likely) + model.floor);
}

Bounded times(Bounded x, double factor, int roundings) {
    if (factor == 1) return x;
    const double value = x.value * factor;
    if (x.error == 0 && is_float32(x.value) && is_float32(value)) return {value, 0};
    return settled(value, x.error * std::abs(factor) + roundings * kUnit * std::abs(value));
}

Bounded plus(Bounded x, double term) {
    if (term == 0) return x;
    const double value = x.value + term;
    if (x.error == 0 && is_float32(x.value) && is_float32(value)) return {value, 0};
    return settled(value, x.error + kUnit * (std::abs(x.value) + std::abs(value)));
}

Bounded apply(EpilogueOp op, Bounded x) {
    const Function f = evaluate(op, x.value);
    const double own = std::isfinite(f.rounds) ? kFunctionUnits * kUnit * f.rounds : 0;
    return settled(f.value, f.slope * x.error + own);
}

Bounded apply(DOp op, Bounded x, double d) { return op == DOp::add ? plus(x, d) : times(x, d, 1); }

bool agrees(DType out, Bounded expected, double got) {
    const double x = expected.value;
    if (std::isnan(x)) return std::isnan(got) || rounded_to(out, x) == got;
    if (std::isinf(x) && is_8bit_float(out)) {
        const bool largest = got == std::copysign(largest_finite(out), x);
        return got == x || largest || (out == DType::fp8 && std::isnan(got));
    }
    if (std::isnan(got)) return false;
    if (std::abs(got - x) <= expected.error) return true;  // implies what follows, and is quick
    return rounded_to(out, x - expected.error) <= got && got <= rounded_to(out, x + expected.error);
}

double tolerance_of(DType out, Bounded expected) {
    const double size = std::abs(expected.value) + expected.error;
    if (!std::isfinite(size)) return 0;
    const bool fits = expected.error == 0 && rounded_to(out, expected.value) == expected.value;
    return fits ? 0 : expected.error + std::max(unit_roundoff(out) * size, least_roundoff(out));
}

}  // namespace tilewise
