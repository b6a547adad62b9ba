// SPDX-License-Identifier: MIT
#include "problem/operand_specs.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "problem/facts.hpp"

namespace tilewise {
namespace {

OperandSpec gemm_matrix(const Problem& p, std::string name, int operand, DType dtype) {
    const GemmShape& s = p.gemm;
    const std::int64_t sizes[3][2] = {{s.m, s.k}, {s.k, s.n}, {s.m, s.n}};
    const bool row = is_row(p.layout, operand);
    OperandSpec spec{std::move(name),
                     dtype,
                     {sizes[operand][row ? 0 : 1], sizes[operand][row ? 1 : 0]},
                     {leading_stride(p, operand), 1}};
    const std::int64_t between = batch_stride(p, operand);
    const bool is_shared = operand < 2 && between == 0;  // one serves the whole batch, also one of no elements
    if (s.batch != 1 && !is_shared) {
        spec.shape.insert(spec.shape.begin(), s.batch);
        spec.strides.insert(spec.strides.begin(), between);
    }
    return spec;
}

OperandSpec packed(std::string name, DType dtype, std::vector<std::int64_t> shape) {
    std::vector<std::int64_t> strides(shape.size());
    std::int64_t stride = 1;
    for (std::size_t i = shape.size(); i-- > 0; stride *= shape[i]) strides[i] = stride;
    return {std::move(name), dtype, std::move(shape), std::move(strides)};
}

void append(std::vector<std::int64_t>& shape, const Extents& extents) {
    shape.insert(shape.end(), extents.size.begin(), extents.size.begin() + extents.rank);
}

OperandSpec conv_tensor(const Problem& p, std::string name, int operand, DType dtype) {
    const ConvShape& s = p.conv;
    std::vector<std::int64_t> shape;
    if (is_weight(p.op, operand)) {
        shape = {s.g, s.k / s.g};
        append(shape, s.filter);
        shape.push_back(s.c / s.g);
        return packed(std::move(name), dtype, std::move(shape));
    }
    const bool is_x = is_input(p.op, operand);
    const Extents pixels = is_x ? s.in : output_size(s);
    const std::int64_t channels = (is_x ? s.c : s.k) / s.g;
    shape = {s.n};
    if (is_channels_last(p.layout)) append(shape, pixels);
    shape.insert(shape.end(), {s.g, channels});
    if (!is_channels_last(p.layout)) append(shape, pixels);
    return packed(std::move(name), dtype, std::move(shape));
}

OperandSpec tensor(const Problem& p, std::string name, int operand, DType dtype) {
    return is_conv(p.op) ? conv_tensor(p, std::move(name), operand, dtype)
                         : gemm_matrix(p, std::move(name), operand, dtype);
}

OperandSpec vector(std::string name, DType dtype, std::int64_t length) {
    return {std::move(name), dtype, {length}, {1}};
}

Json::Array numbers(const std::vector<std::int64_t>& values) { return {values.begin(), values.end()}; }

}  // namespace

std::vector<OperandSpec> operand_specs(const Problem& p) {
    std::vector<OperandSpec> specs = {tensor(p, "a", 0, p.dtype_a), tensor(p, "b", 1, p.dtype_b),
                                      tensor(p, "c", 2, p.dtype_out)};
    if (has_bias(p)) {
        specs.push_back(vector("bias", p.dtype_out, bias_length(p)));
    }
    for (std::size_t i = 0; i < d_count(p); ++i) specs.push_back(tensor(p, fmt::format("d{}", i), 2, p.dtype_out));
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
