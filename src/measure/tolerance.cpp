// SPDX-License-Identifier: MIT
#include "measure/tolerance.hpp"

#include <algorithm>
#include <cmath>

#include "problem/facts.hpp"

namespace tilewise {
namespace {

constexpr double kSmallestNormal = 0x1p-126;

// See tolerance.hpp.
constexpr double kGrowth = 2;
constexpr double kExtraSteps = 2;
constexpr double kFastStep = 32;
constexpr double kStrictSpread = 2;
constexpr double kTf32Unit = 0x1p-10;
constexpr double kTf32x3Unit = 0x1p-19;

constexpr double kSmallestNormalHalf = 0x1p-14, kFlushedShare = 0x1p-12, kFewFlushed = 4;
bool has_half_subnormals(DType dtype) { return dtype == DType::fp16 || dtype == DType::bf8; }

double grown(double steps) { return std::min(steps, kGrowth * std::sqrt(steps)) + kExtraSteps; }

}  // namespace

ErrorModel error_model(const Problem& p, const Summation& summation) {
    ErrorModel model;
    model.wraps = p.dtype_a == DType::int8;
    if (model.wraps) return model;
    const auto depth = static_cast<double>(gemm_view(p).k);
    const bool split_inputs = p.math == Math::tf32x3;  // each product is three
    const double steps = (split_inputs ? 3 * depth : depth) + summation.split_k;
    model.relative = kFloatUnit * grown(steps);
    model.floor = depth * kSmallestNormal;
    if (summation.flushes_subnormals && (has_half_subnormals(p.dtype_a) || has_half_subnormals(p.dtype_b))) {
        model.floor += (kFewFlushed + depth * kFlushedShare) * kSmallestNormalHalf;
    }
    if (p.math == Math::tf32) model.input_unit = kTf32Unit;
    if (split_inputs) model.input_unit = kTf32x3Unit;
    if (is_8bit_float(p.dtype_a) && summation.fp8_bits < kFloatBits) {
        const double unit = std::ldexp(1.0, -summation.fp8_bits);
        if (p.math == Math::strict) model.input_unit = kStrictSpread * unit;
        if (p.math == Math::fast) model.relative += unit * grown(std::ceil(depth / kFastStep));
    }
    return model;
}

}  // namespace tilewise
