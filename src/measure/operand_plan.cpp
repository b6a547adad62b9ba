// SPDX-License-Identifier: MIT
#include "measure/operand_plan.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "problem/facts.hpp"

namespace tilewise {
namespace {

StoredRows vector_of(std::int64_t length) { return {1, 1, length, length, length}; }

}  // namespace

StoredRows stored_rows(const Problem& p, int operand) {
    if (is_conv(p.op)) return vector_of(operand_elements(p)[static_cast<std::size_t>(operand)]);
    if (operand_elements(p)[static_cast<std::size_t>(operand)] == 0) return vector_of(0);
    const std::int64_t between = batch_stride(p, operand);
    const bool shared = p.gemm.batch > 1 && between == 0;  // one matrix serves the whole batch
    StoredRows shape;
    shape.matrices = shared ? 1 : p.gemm.batch;
    shape.row_length = contiguous_length(p, operand);
    const std::int64_t elements[] = {p.gemm.m * p.gemm.k, p.gemm.k * p.gemm.n, p.gemm.m * p.gemm.n};
    shape.rows = elements[operand] / shape.row_length;
    shape.leading = leading_stride(p, operand);
    shape.between = between;
    return shape;
}

std::vector<PlannedInput> planned_inputs(const Problem& p, std::uint64_t seed) {
    std::vector<PlannedInput> inputs;
    const auto add = [&](OperandRole role, std::string name, DType type, const StoredRows& shape, Range range) {
        inputs.push_back({role, std::move(name), type, shape, range, random_bits(seed, inputs.size())});
    };
    const DType out = p.dtype_out;
    add(OperandRole::a, "A", p.dtype_a, stored_rows(p, 0), operand_range(p.dtype_a));
    add(OperandRole::b, "B", p.dtype_b, stored_rows(p, 1), operand_range(p.dtype_b));
    if (p.beta) add(OperandRole::original_c, "copy of C", out, stored_rows(p, 2), operand_range(out));
    if (has_bias(p)) {
        add(OperandRole::bias, "bias", out, vector_of(bias_length(p)), operand_range(out));
    }
    if (p.scale != Scale::none) {
        const bool per_row = p.scale == Scale::row;
        add(OperandRole::scale_a, "scale of A", DType::fp32, vector_of(per_row ? p.gemm.m : 1), kScaleRange);
        add(OperandRole::scale_b, "scale of B", DType::fp32, vector_of(per_row ? p.gemm.n : 1), kScaleRange);
    }
    for (std::size_t i = 0; i < d_count(p); ++i) {
        add(OperandRole::d, fmt::format("D{}", i), out, stored_rows(p, 2), operand_range(out));
    }
    return inputs;
}

}  // namespace tilewise
