// SPDX-License-Identifier: MIT
// The steps of a GEMM with a bound of their error, and the verdict on an element. src/measure/tolerance.hpp explains the
// bounds and derives the error model of a problem; this is the arithmetic, for the host's checks and for those that run
// on a GPU.
#pragma once
#include "args.hpp"
#include "element.hpp"

namespace tilewise {

// An exact value and how far a computed one may be from it.
struct Bounded {
    double value = 0;
    double error = 0;
};

// How a kernel for the problem may err while it adds up products.
struct ErrorModel {
    double relative = 0;    // error per S
    double input_unit = 0;  // roundoff of the inputs before they are multiplied; 0 when they are used as they are
    double floor = 0;       // for terms that vanish below the smallest normal number
    bool wraps = false;     // integers: the sum is exact modulo 2^32
};

inline constexpr double kFloatUnit = 0x1p-24;
inline constexpr double kHoeffding = 6 * kRootTwo;
inline constexpr double kFunctionUnits = 16;

constexpr bool is_float32(double value) { return rounded_to(KernelDType::fp32, value) == value; }

// An infinity is an infinity in any precision; there is nothing to bound.
constexpr Bounded settled(double value, double error) { return {value, is_finite(value) ? error : 0}; }

// A whole number as an int32 keeps it.
inline double wrapped(double whole) { return whole - 0x1p32 * floor_of((whole + 0x1p31) * 0x1p-32); }

// The sum of products, given S and Q (which only counts where input_unit is not 0).
inline Bounded accumulated(const ErrorModel& model, double sum, double magnitude, double squares) {
    if (model.wraps) return {wrapped(sum), 0};
    const double surely = 2 * magnitude;
    const double likely = kHoeffding * root_of(squares) + 2 * magnitude_of(sum);
    return settled(sum, model.relative * magnitude + model.input_unit * lesser(surely, likely) + model.floor);
}

// Steps in fp32. What is exact and stays a float stays exact.
constexpr Bounded times(Bounded x, double factor, int roundings) {
    if (factor == 1) return x;
    const double value = x.value * factor;
    if (x.error == 0 && is_float32(x.value) && is_float32(value)) return {value, 0};
    return settled(value, x.error * magnitude_of(factor) + roundings * kFloatUnit * magnitude_of(value));
}
constexpr Bounded plus(Bounded x, double term) {
    if (term == 0) return x;
    const double value = x.value + term;
    if (x.error == 0 && is_float32(x.value) && is_float32(value)) return {value, 0};
    return settled(value, x.error + kFloatUnit * (magnitude_of(x.value) + magnitude_of(value)));
}

struct ActivationValue {
    double value;
    double slope;   // the steepest, anywhere
    double rounds;  // what the function's own error is relative to
};
inline ActivationValue activation(KernelEpilogueOp op, double x) {
    const double size = magnitude_of(x);
    switch (op) {
        case KernelEpilogueOp::none:
        case KernelEpilogueOp::bias:
        case KernelEpilogueOp::add:
        case KernelEpilogueOp::mul: break;
        // Written so that NaN passes through.
        case KernelEpilogueOp::relu: return {x < 0 ? 0 : x, 1, 0};
        case KernelEpilogueOp::relu6: return {x < 0 ? 0 : x > 6 ? 6 : x, 1, 0};
        case KernelEpilogueOp::gelu: return {0.5 * x * erfc_of(-x / kRootTwo), 1.13, size};
        case KernelEpilogueOp::gelu_tanh: {
            const double inner = root_of(2 / kPi) * (x + 0.044715 * x * x * x);
            return {0.5 * x * (1 + tanh_of(inner)), 1.13, size};
        }
        case KernelEpilogueOp::silu: return {x / (1 + exp_of(-x)), 1.1, size};
        case KernelEpilogueOp::sigmoid: return {1 / (1 + exp_of(-x)), 0.25, 1};
        case KernelEpilogueOp::tanh: return {tanh_of(x), 1, 1};
        case KernelEpilogueOp::hardswish: {
            const double ramp = x + 3 < 0 ? 0 : x + 3 > 6 ? 6 : x + 3;
            return {x * ramp / 6, 1.5, size};
        }
    }
    return {x, 1, 0};
}
inline Bounded apply(KernelEpilogueOp op, Bounded x) {  // an activation: bias and D tensors are plus and times
    const ActivationValue f = activation(op, x.value);
    const double own = is_finite(f.rounds) ? kFunctionUnits * kFloatUnit * f.rounds : 0;
    return settled(f.value, f.slope * x.error + own);
}

// Whether `got`, a value of type `out`, is right. NaN and infinity must be the same, but that an 8-bit float may keep
// its largest value or NaN in place of infinity.
constexpr bool agrees(KernelDType out, Bounded expected, double got) {
    const double x = expected.value;
    if (is_nan(x)) return is_nan(got) || rounded_to(out, x) == got;
    if (is_infinite(x) && is_8bit_float(out)) {
        const bool largest = got == (x < 0 ? -largest_finite(out) : largest_finite(out));
        return got == x || largest || (out == KernelDType::fp8 && is_nan(got));
    }
    if (is_nan(got)) return false;
    if (magnitude_of(got - x) <= expected.error) return true;  // implies what follows, and is quick
    return rounded_to(out, x - expected.error) <= got && got <= rounded_to(out, x + expected.error);
}

// What another right result may be where one is known: so far off as both may err, and what is known has been rounded itself.
constexpr Bounded beside(KernelDType out, double known, double apart) {
    const double rounding = apart == 0 ? 0 : unit_roundoff(out) * magnitude_of(known);
    return {known, is_finite(known) ? apart + rounding : 0};
}

// The distance up to which `agrees` can say yes, to be shown next to an error.
constexpr double tolerance_of(KernelDType out, Bounded expected) {
    const double size = magnitude_of(expected.value) + expected.error;
    if (!is_finite(size)) return 0;
    const bool fits = expected.error == 0 && rounded_to(out, expected.value) == expected.value;
    return fits ? 0 : expected.error + greater(unit_roundoff(out) * size, least_roundoff(out));
}

// How far off an element is: 0 where nothing is to be measured, infinite where a NaN should not be.
constexpr double error_of(Bounded expected, double got, bool right) {
    const bool same = expected.value == got || (is_nan(expected.value) && is_nan(got));
    if (same || (right && !is_finite(expected.value))) return 0;
    const double error = magnitude_of(got - expected.value);
    return is_nan(error) ? kInfinity : error;
}
// The error in relation to the tolerance. What saturated is right however far it is from the exact value; what is wrong
// is wrong even where the rounding of a neighbour would have been as far.
constexpr double ratio_of(double error, double tolerance, bool right) {
    const double off = error == 0 ? 0 : tolerance > 0 ? error / tolerance : kInfinity;
    return right ? lesser(off, 1) : greater(off, 1 + 0x1p-52);
}

}  // namespace tilewise
