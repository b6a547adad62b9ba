// SPDX-License-Identifier: MIT
#include "problem/facts.hpp"

#include <algorithm>

#include "base/rounding.hpp"

namespace tilewise {
namespace {

std::int64_t packed_leading(const Problem& p, int operand) {
    const GemmShape& s = p.gemm;
    const bool row = is_row(p.layout, operand);
    if (operand == 0) return row ? s.k : s.m;
    if (operand == 1) return row ? s.n : s.k;
    return row ? s.n : s.m;
}

std::int64_t stored_rows(const Problem& p, int operand) {
    const GemmShape& s = p.gemm;
    const bool row = is_row(p.layout, operand);
    if (operand == 0) return row ? s.m : s.k;
    if (operand == 1) return row ? s.k : s.n;
    return row ? s.m : s.n;
}

}  // namespace

std::int64_t product(const Extents& extents) {
    std::int64_t result = 1;
    for (int i = 0; i < extents.rank; ++i) result *= extents[i];
    return result;
}

std::int64_t output_extent(const ConvShape& conv, int d) {
    const std::int64_t padded = conv.in[d] + conv.pad_before[d] + conv.pad_after[d];
    return whole_div(padded - conv.dilation[d] * (conv.filter[d] - 1) - 1, conv.stride[d]) + 1;
}

Extents output_size(const ConvShape& conv) {
    Extents out;
    out.rank = conv.in.rank;
    for (int i = 0; i < out.rank; ++i) out[i] = output_extent(conv, i);
    return out;
}

GemmView gemm_view(const Problem& p) {
    if (p.op == Op::gemm) return {p.gemm.m, p.gemm.n, p.gemm.k, p.gemm.batch};
    const ConvShape& s = p.conv;
    const std::int64_t outputs = s.n * product(output_size(s));
    const std::int64_t inputs = s.n * product(s.in);
    const std::int64_t taps = product(s.filter);
    const std::int64_t c = whole_div(s.c, s.g), k = whole_div(s.k, s.g);
    switch (p.op) {
        case Op::conv_bwd_data: return {inputs, c, k * taps, s.g};
        case Op::conv_bwd_weight: return {k, c * taps, outputs, s.g};
        default: return {outputs, k, c * taps, s.g};
    }
}

std::array<std::int64_t, 3> operand_elements(const Problem& p) {
    if (p.op == Op::gemm) {
        const GemmShape& s = p.gemm;
        // One matrix that serves the whole batch is read once.
        const std::int64_t batch_a = s.batch_stride[0] == 0 ? 1 : s.batch;
        const std::int64_t batch_b = s.batch_stride[1] == 0 ? 1 : s.batch;
        return {batch_a * s.m * s.k, batch_b * s.k * s.n, s.batch * s.m * s.n};
    }
    const ConvShape& s = p.conv;
    const std::int64_t x = s.n * product(s.in) * s.c;
    const std::int64_t w = s.k * product(s.filter) * (s.c / s.g);
    const std::int64_t y = s.n * product(output_size(s)) * s.k;
    switch (p.op) {
        case Op::conv_bwd_data: return {y, w, x};
        case Op::conv_bwd_weight: return {y, x, w};
        default: return {x, w, y};
    }
}

std::int64_t leading_stride(const Problem& p, int operand) {
    const std::int64_t given = p.gemm.leading[static_cast<std::size_t>(operand)];
    return given == kPacked ? packed_leading(p, operand) : given;
}

std::int64_t batch_stride(const Problem& p, int operand) {
    const std::int64_t given = p.gemm.batch_stride[static_cast<std::size_t>(operand)];
    return given == kPacked ? stored_rows(p, operand) * leading_stride(p, operand) : given;
}

bool is_weight(Op op, int operand) { return is_conv(op) && operand == (op == Op::conv_bwd_weight ? 2 : 1); }

bool is_input(Op op, int operand) {
    return is_conv(op) && operand == (op == Op::conv_fwd ? 0 : op == Op::conv_bwd_data ? 2 : 1);
}

std::int64_t bias_length(const Problem& p) {
    const GemmView view = gemm_view(p);
    return is_conv(p.op) ? view.n * view.batch : view.n;
}

std::int64_t contiguous_length(const Problem& p, int operand, std::int64_t groups) {
    if (p.op == Op::gemm) return packed_leading(p, operand);
    const ConvShape& s = p.conv;
    if (is_weight(p.op, operand)) return s.c / s.g;
    const bool is_x = is_input(p.op, operand);
    if (is_channels_last(p.layout)) return (is_x ? s.c : s.k) / s.g * groups;
    return is_x ? s.in[s.in.rank - 1] : output_size(s)[s.in.rank - 1];
}

double flops(const Problem& p) {
    const GemmView v = gemm_view(p);
    return 2.0 * static_cast<double>(v.m) * static_cast<double>(v.n) * static_cast<double>(v.k) *
           static_cast<double>(v.batch) *
           // Backward data visits every input position with every tap, but only one in `stride` of them meets an
           // output; the work is that of the forward pass.
           (p.op == Op::conv_bwd_data
                ? static_cast<double>(product(output_size(p.conv))) / static_cast<double>(product(p.conv.in))
                : 1.0);
}

bool has_bias(const Problem& p) {
    return std::find(p.epilogue.begin(), p.epilogue.end(), EpilogueOp::bias) != p.epilogue.end();
}

std::size_t d_count(const Problem& p) {
    return static_cast<std::size_t>(std::count_if(p.epilogue.begin(), p.epilogue.end(), reads_d));
}

double bytes_moved(const Problem& p) {
    const auto elements = operand_elements(p);
    const double out_bytes = static_cast<double>(elements[2]) * static_cast<double>(bytes_of(p.dtype_out));
    double bytes = static_cast<double>(elements[0]) * static_cast<double>(bytes_of(p.dtype_a)) +
                   static_cast<double>(elements[1]) * static_cast<double>(bytes_of(p.dtype_b)) + out_bytes;
    if (p.beta) bytes += out_bytes;
    return bytes + static_cast<double>(d_count(p)) * out_bytes;
}

double arithmetic_intensity(const Problem& p) {
    const double bytes = bytes_moved(p);
    return bytes > 0 ? flops(p) / bytes : 0;
}

bool is_depthwise(const Problem& p) { return is_conv(p.op) && p.conv.g > 1 && p.conv.g == p.conv.c; }

bool is_pointwise(const Problem& p) { return is_conv(p.op) && product(p.conv.filter) == 1; }

}  // namespace tilewise
