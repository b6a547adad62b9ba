// SPDX-License-Identifier: MIT
#include "problem/operand_specs.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "problem/facts.hpp"

namespace tilewise {
namespace {

OperandSpec matrix(const Problem& p, std::string name, int operand, DType dtype) {
    const std::int64_t row_length = contiguous_length(p, operand);
    const std::int64_t across[] = {p.gemm.m * p.gemm.k, p.gemm.k * p.gemm.n, p.gemm.m * p.gemm.n};
    OperandSpec spec{
        std::move(name), dtype, {across[operand] / row_length, row_length}, {leading_stride(p, operand), 1}};
    const std::int64_t between = batch_stride(p, operand);
    if (p.gemm.batch > 1 && between != 0) {
        spec.shape.insert(spec.shape.begin(), p.gemm.batch);
        spec.strides.insert(spec.strides.begin(), between);
    }
    return spec;
}

OperandSpec vector(std::string name, DType dtype, std::int64_t length) {
    return {std::move(name), dtype, {length}, {1}};
}

Json::Array numbers(const std::vector<std::int64_t>& values) { return {values.begin(), values.end()}; }

}  // namespace

std::vector<OperandSpec> operand_specs(const Problem& p) {
    std::vector<OperandSpec> specs = {matrix(p, "a", 0, p.dtype_a), matrix(p, "b", 1, p.dtype_b),
                                      matrix(p, "c", 2, p.dtype_out)};
    if (std::find(p.epilogue.begin(), p.epilogue.end(), EpilogueOp::bias) != p.epilogue.end()) {
        specs.push_back(vector("bias", p.dtype_out, p.gemm.n));
    }
    for (std::size_t i = 0; i < p.d_ops.size(); ++i) specs.push_back(matrix(p, fmt::format("d{}", i), 2, p.dtype_out));
    if (p.scale != Scale::none) {
        const bool per_row = p.scale == Scale::row;
        specs.push_back(vector("scale_a", DType::fp32, per_row ? p.gemm.m : 1));
        specs.push_back(vector("scale_b", DType::fp32, per_row ? p.gemm.n : 1));
    }
    return specs;
}

Json operands_to_json(const std::vector<OperandSpec>& operands) {
    Json::Array list;
    for (const OperandSpec& spec : operands) {
        list.push_back(Json::object({{"name", spec.name},
                                     {"dtype", name_of(spec.dtype)},
                                     {"shape", Json(numbers(spec.shape))},
                                     {"strides", Json(numbers(spec.strides))}}));
    }
    return Json(std::move(list));
}

}  // namespace tilewise
