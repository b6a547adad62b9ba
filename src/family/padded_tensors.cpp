// SPDX-License-Identifier: MIT
#include "family/padded_tensors.hpp"

#include <algorithm>

#include "problem/facts.hpp"

namespace tilewise {
namespace {

RowNest packed(std::int64_t blocks, std::int64_t rows, std::int64_t row_bytes) {
    return {blocks, rows, row_bytes, row_bytes, rows * row_bytes};
}

DType type_of(const Problem& p, int operand) {
    return operand == 0 ? p.dtype_a : operand == 1 ? p.dtype_b : p.dtype_out;
}

RowNest gemm_nest(const Problem& p, int operand) {
    const std::int64_t bytes = bytes_of(type_of(p, operand));
    const std::int64_t elements[] = {p.gemm.m * p.gemm.k, p.gemm.k * p.gemm.n, p.gemm.m * p.gemm.n};
    const std::int64_t length = contiguous_length(p, operand), rows = elements[operand] / length;
    const std::int64_t leading = leading_stride(p, operand), between = batch_stride(p, operand);
    // One matrix that serves the whole batch is copied once.
    const bool shared = between == 0;
    return {shared ? 1 : p.gemm.batch, rows, length * bytes, leading * bytes,
            (shared ? rows * leading : between) * bytes};
}

RowNest conv_nest(const Problem& p, int operand) {
    const ConvShape& s = p.conv;
    const std::int64_t bytes = bytes_of(type_of(p, operand)), c = s.c / s.g, k = s.k / s.g;
    if (is_weight(p.op, operand)) return packed(s.g, k * product(s.filter), c * bytes);
    const bool is_x = is_input(p.op, operand);
    const std::int64_t pixels = product(is_x ? s.in : output_size(s)), channels = is_x ? c : k;
    if (is_channels_last(p.layout)) return packed(s.n * pixels, s.g, channels * bytes);
    return packed(s.n, s.g, channels * pixels * bytes);
}

RowNest nest_of(const Problem& p, int operand) {
    return p.op == Op::gemm ? gemm_nest(p, operand) : conv_nest(p, operand);
}

// A value for every column of C, or for every channel of the output in every group.
RowNest bias_nest(const Problem& p) {
    const std::int64_t bytes = bytes_of(p.dtype_out);
    const GemmView view = gemm_view(p);
    return p.op == Op::gemm ? packed(1, 1, view.n * bytes) : packed(1, view.batch, view.n * bytes);
}

class Placement {
public:
    void add(TensorRole role, std::size_t index, const RowNest& given, const RowNest& padded) {
        result_.tensors.push_back({role, index, given, padded, end_});
        const std::int64_t bytes = padded.blocks * padded.block_pitch;
        end_ += (bytes + kPaddedAlignment - 1) / kPaddedAlignment * kPaddedAlignment;
    }
    PaddedTensors take() {
        if (!result_.tensors.empty()) result_.bytes = end_ + kPaddedAlignment;
        return std::move(result_);
    }

private:
    PaddedTensors result_;
    std::int64_t end_ = 0;
};

}  // namespace

PaddedTensors padded_tensors(const Problem& given, const Problem& padded, const std::array<bool, 3>& copied) {
    Placement layout;
    for (int i = 0; i < 3; ++i) {
        if (!copied[static_cast<std::size_t>(i)]) continue;
        layout.add(static_cast<TensorRole>(i), 0, nest_of(given, i), nest_of(padded, i));
    }
    if (has_bias(given) && bias_nest(given) != bias_nest(padded)) {
        layout.add(TensorRole::bias, 0, bias_nest(given), bias_nest(padded));
    }
    if (given.scale == Scale::row) {
        const auto floats = [](std::int64_t count) {
            return packed(1, 1, count * static_cast<std::int64_t>(sizeof(float)));
        };
        const GemmShape &from = given.gemm, &to = padded.gemm;
        if (from.m != to.m) layout.add(TensorRole::scale_a, 0, floats(from.m), floats(to.m));
        if (from.n != to.n) layout.add(TensorRole::scale_b, 0, floats(from.n), floats(to.n));
    }
    for (std::size_t i = 0; i < d_count(given) && copied[2]; ++i) {
        layout.add(TensorRole::d, i, nest_of(given, 2), nest_of(padded, 2));
    }
    return layout.take();
}

}  // namespace tilewise
