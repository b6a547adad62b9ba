// SPDX-License-Identifier: MIT
// Whether a problem is possible at all, whatever the kernel. Rules run in order and the first broken one answers:
// later ones divide and multiply numbers that earlier ones have bounded.
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <initializer_list>

#include "problem/facts.hpp"
#include "problem/operand_specs.hpp"
#include "problem/problem.hpp"

namespace tilewise {
namespace {

using Verdict = std::optional<Rejected>;

Verdict reject(std::string rule, std::string have, std::string need) {
    return Rejected{std::move(rule), std::move(have), std::move(need)};
}

struct Sized {
    std::string_view name;
    std::int64_t value;
};

Verdict check_at_least(std::int64_t least, std::initializer_list<Sized> sizes) {
    for (const auto& [name, value] : sizes) {
        if (value < least || value > kMaxElements) {
            return reject("size_positive", fmt::format("{}={}", name, value),
                          fmt::format("{} to {}", least, kMaxElements));
        }
    }
    return {};
}
Verdict check_positive(std::initializer_list<Sized> sizes) { return check_at_least(1, sizes); }
// Nothing is a size, too: the result is empty, or that of sums without terms.
Verdict check_not_negative(std::initializer_list<Sized> sizes) { return check_at_least(0, sizes); }

Verdict check_count(std::string_view name, std::initializer_list<std::int64_t> factors) {
    std::int64_t count = 1;
    for (const std::int64_t factor : factors) {
        if (__builtin_mul_overflow(count, factor, &count) || count > kMaxElements) {
            std::string product;
            for (const std::int64_t f : factors) product += fmt::format("{}{}", product.empty() ? "" : "*", f);
            return reject("size_overflow", fmt::format("{} of {} elements", name, product),
                          fmt::format("at most {} elements", kMaxElements));
        }
    }
    return {};
}

Verdict check_dtypes(const Problem& p) {
    const DType a = p.dtype_a, b = p.dtype_b, out = p.dtype_out;
    if (a == DType::int32 || b == DType::int32) {
        return reject("dtype_input", "int32 as an input", "fp32, fp16, bf16, fp8, bf8 or int8");
    }
    if (a != b && !(is_8bit_float(a) && is_8bit_float(b))) {
        return reject("dtype_pair", fmt::format("dtype={}, b={}", name_of(a), name_of(b)),
                      "the same dtype for both inputs, or a mix of fp8 and bf8");
    }
    if (!is_output_of(a, out)) {
        return reject("dtype_output", fmt::format("out={} of {} inputs", name_of(out), name_of(a)),
                      std::string(outputs_of(a)));
    }
    if (a == DType::int8 && is_conv(p.op) && p.op != Op::conv_fwd) {
        return reject("int8_forward_only", fmt::format("{} in int8", name_of(p.op)), "conv_fwd, or a float dtype");
    }
    return {};
}

Verdict check_options(const Problem& p) {
    if ((p.math == Math::tf32 || p.math == Math::tf32x3) && p.dtype_a != DType::fp32) {
        return reject("math_dtype", fmt::format("math={} with {}", name_of(p.math), name_of(p.dtype_a)),
                      "dtype=fp32, or math=strict or fast");
    }
    if (p.packed_b && p.op == Op::conv_bwd_weight) {
        return reject("packed_weights", "packed_b=1 in conv_bwd_weight, which reads no weights",
                      "packed_b=0, or conv_fwd or conv_bwd_data");
    }
    if (p.scale == Scale::row && is_conv(p.op)) {
        return reject("scale_row", "scale=row in a convolution", "scale=tensor");
    }
    if (p.epilogue.size() > kMaxEpilogueOps) {
        return reject("epilogue_length", fmt::format("{} operations", p.epilogue.size()),
                      fmt::format("at most {}", kMaxEpilogueOps));
    }
    int biases = 0;
    for (const EpilogueOp op : p.epilogue) biases += op == EpilogueOp::bias ? 1 : 0;
    if (biases > 1) return reject("epilogue_bias", fmt::format("{} times bias", biases), "bias at most once");
    if (biases > 0 && p.op == Op::conv_bwd_weight) {
        return reject("bias_output", "a bias in conv_bwd_weight, whose output are weights",
                      "conv_fwd or conv_bwd_data, whose outputs have channels to add it to");
    }
    if (d_count(p) > kMaxDTensors) {
        return reject("d_tensors", fmt::format("{} D tensors", d_count(p)), fmt::format("at most {}", kMaxDTensors));
    }
    const auto align = static_cast<std::uint64_t>(p.align_bytes);
    if (p.align_bytes < 1 || p.align_bytes > kMaxAlignBytes || !std::has_single_bit(align)) {
        return reject("align", fmt::format("align={}", p.align_bytes),
                      fmt::format("a power of two from 1 to {}", kMaxAlignBytes));
    }
    return {};
}

Verdict check_gemm_strides(const Problem& p) {
    constexpr std::string_view kOperand[] = {"a", "b", "c"};
    for (int i = 0; i < 3; ++i) {
        const std::int64_t leading = leading_stride(p, i);
        const std::int64_t row_length = contiguous_length(p, i);
        if (leading < row_length || leading > kMaxElements) {
            return reject("leading_stride", fmt::format("ld{}={}", kOperand[i], leading),
                          fmt::format("at least {}, the length of a stored row", row_length));
        }
        const std::int64_t elements = operand_elements(p)[static_cast<std::size_t>(i)];
        if (elements == 0) {  // strides of nothing mean nothing, but products of them are taken
            const auto& s = p.gemm;
            const std::int64_t rows = i == 0 ? std::max(s.m, s.k) : i == 1 ? std::max(s.k, s.n) : std::max(s.m, s.n);
            const std::string name = fmt::format("operand {}", kOperand[i]);
            if (auto verdict = check_count(name, {rows, leading})) return verdict;
            if (auto verdict = check_count(name, {p.gemm.batch, batch_stride(p, i)})) return verdict;
            continue;
        }
        const std::int64_t rows = elements / row_length;
        if (auto verdict = check_count(fmt::format("operand {}", kOperand[i]), {rows, leading})) return verdict;
        const std::int64_t between = batch_stride(p, i);
        const bool broadcast = between == 0 && i < 2;
        const std::int64_t matrix_rows = rows / (i < 2 && between == 0 ? 1 : p.gemm.batch);
        const std::int64_t span = (matrix_rows - 1) * leading + row_length;
        const bool overlaps_output = i == 2 && between < span;
        if (p.gemm.batch > 1 && !broadcast && (between < 1 || between > kMaxElements || overlaps_output)) {
            return reject("batch_stride", fmt::format("batch_stride_{}={}", kOperand[i], between),
                          i == 2 ? fmt::format("at least {}, so that outputs do not overlap", span)
                                 : "0 (one matrix for the whole batch) or more");
        }
        if (auto verdict = check_count(fmt::format("operand {}", kOperand[i]), {p.gemm.batch, between})) return verdict;
    }
    return {};
}

Verdict check_gemm(const Problem& p) {
    const GemmShape& s = p.gemm;
    if (!is_gemm_layout(p.layout)) {
        return reject("layout_op", fmt::format("layout={} in a gemm", name_of(p.layout)), "three letters of r and c");
    }
    if (auto verdict = check_not_negative({{"m", s.m}, {"n", s.n}, {"k", s.k}, {"batch", s.batch}})) return verdict;
    if (auto verdict = check_count("operand a", {s.batch, s.m, s.k})) return verdict;
    if (auto verdict = check_count("operand b", {s.batch, s.k, s.n})) return verdict;
    if (auto verdict = check_count("operand c", {s.batch, s.m, s.n})) return verdict;
    return check_gemm_strides(p);
}

Verdict check_conv_window(const ConvShape& s, int i) {
    for (const auto& [name, value] : {Sized{"in", s.in[i]}, Sized{"filter", s.filter[i]}, Sized{"stride", s.stride[i]},
                                      Sized{"dilation", s.dilation[i]}}) {
        if (auto verdict = check_positive({{name, value}})) return verdict;
    }
    for (const std::int64_t pad : {s.pad_before[i], s.pad_after[i]}) {
        if (pad < 0 || pad > kMaxElements) {
            return reject("pad_range", fmt::format("pad={} in dimension {}", pad, i),
                          fmt::format("0 to {}", kMaxElements));
        }
    }
    if (auto verdict = check_count("filter extent", {s.filter[i], s.dilation[i]})) return verdict;
    const std::int64_t reach = (s.filter[i] - 1) * s.dilation[i] + 1;
    const std::int64_t padded = s.in[i] + s.pad_before[i] + s.pad_after[i];
    if (reach > padded) {
        return reject("filter_fits",
                      fmt::format("filter reach {} (filter {}, dilation {}) in dimension {}", reach, s.filter[i],
                                  s.dilation[i], i),
                      fmt::format("at most {}, the padded input", padded));
    }
    return {};
}

Verdict check_conv(const Problem& p) {
    const ConvShape& s = p.conv;
    if (!is_conv_layout(p.layout) || spatial_dims(p.layout) != s.in.rank) {
        return reject("layout_op", fmt::format("layout={} with {} spatial dimensions", name_of(p.layout), s.in.rank),
                      "nwgc or ngcw in 1-D, nhwgc or ngchw in 2-D, ndhwgc or ngcdhw in 3-D");
    }
    if (auto verdict = check_not_negative({{"n", s.n}})) return verdict;
    if (auto verdict = check_positive({{"g", s.g}, {"c", s.c}, {"k", s.k}})) return verdict;
    if (s.c % s.g != 0) return reject("groups_divide", fmt::format("c={}, g={}", s.c, s.g), "c divisible by g");
    if (s.k % s.g != 0) return reject("groups_divide", fmt::format("k={}, g={}", s.k, s.g), "k divisible by g");
    for (int i = 0; i < s.in.rank; ++i) {
        if (auto verdict = check_conv_window(s, i)) return verdict;
    }
    const Extents in = s.in, out = output_size(s), f = s.filter;
    const auto extent = [](const Extents& e, int i) { return i < e.rank ? e[i] : 1; };
    if (auto v = check_count("x", {s.n, s.c, extent(in, 0), extent(in, 1), extent(in, 2)})) return v;
    if (auto v = check_count("y", {s.n, s.k, extent(out, 0), extent(out, 1), extent(out, 2)})) return v;
    return check_count("w", {s.k, s.c / s.g, extent(f, 0), extent(f, 1), extent(f, 2)});
}

}  // namespace

Extents filled(int rank, std::int64_t value) {
    Extents extents;
    extents.rank = rank;
    for (int i = 0; i < rank; ++i) extents[i] = value;
    return extents;
}

std::optional<Rejected> check_problem(const Problem& problem) {
    if (auto verdict = check_dtypes(problem)) return verdict;
    if (auto verdict = check_options(problem)) return verdict;
    return problem.op == Op::gemm ? check_gemm(problem) : check_conv(problem);
}

}  // namespace tilewise
