// SPDX-License-Identifier: MIT
// tilewise::conv, conv_backward_data and conv_backward_weight on tensors of a device. Kernels compute on channels-last memory:
// operands and results of another format are copied.
#pragma once

#include <ATen/ops/zeros.h>

#include "gemm.hpp"
#include "operands.hpp"

namespace tilewise_torch {

constexpr int64_t kMostDims = 3;
using Sizes = c10::SmallVector<int64_t, kMostDims + 2>;

struct Geometry {
    at::IntArrayRef stride, before, after, dilation;
    int64_t groups = 1;

    void check(int64_t dims) const {
        for (const auto& [list, name] : {std::pair(stride, "stride"), std::pair(before, "before"),
                                         std::pair(after, "after"), std::pair(dilation, "dilation")}) {
            TORCH_CHECK_VALUE(static_cast<int64_t>(list.size()) == dims, name, ": ", list, "; need ", dims, " numbers");
        }
        TORCH_CHECK_VALUE(groups >= 1, "groups: ", groups, "; need 1 or more");
        for (const int64_t step : stride) TORCH_CHECK_VALUE(step >= 1, "stride: ", stride, "; need 1 or more");
    }
    void add_to(Key& key) const {
        key.add(stride), key.add(before), key.add(after), key.add(dilation);
        key.add(groups);
    }
    std::string fields() const {
        std::string pad;
        for (std::size_t i = 0; i < before.size(); ++i) {
            pad += c10::str(i == 0 ? "" : "x", before[i], ":", after[i]);
        }
        return c10::str("\"stride\":\"", joined(stride), "\",\"pad\":\"", pad, "\",\"dilation\":\"", joined(dilation),
                        "\",\"g\":", groups, ",");
    }
};

// One convolution, whatever its direction: c and k are totals over the groups.
struct Problem {
    Op op = kConvForward;
    int64_t n = 0, c = 0, k = 0;
    at::IntArrayRef in, filter;
    Geometry geometry;

    // Of y along a dimension; 0 where the filter is larger than the padded x.
    int64_t positions(std::size_t i) const {
        const Geometry& g = geometry;
        const int64_t room = in[i] + g.before[i] + g.after[i] - g.dilation[i] * (filter[i] - 1) - 1;
        return room < 0 ? 0 : room / g.stride[i] + 1;
    }
    // Kernels trust the sizes: they would read beyond a smaller dy.
    void check_gradient(const at::Tensor& dy) const {
        Sizes need;
        for (std::size_t i = 0; i < in.size(); ++i) need.push_back(positions(i));
        TORCH_CHECK_VALUE(dy.sizes().slice(2) == at::IntArrayRef(need), "dy: sizes ", dy.sizes().slice(2),
                          "; inputs of ", in, " with filters of ", filter, " need ", at::IntArrayRef(need));
    }
    void add_to(Key& key) const {
        key.add(static_cast<int64_t>(in.size())), key.add(n), key.add(c), key.add(k);
        key.add(in), key.add(filter);
        geometry.add_to(key);
    }
    std::string text(const char* dtype, bool has_bias, std::string_view activation, int64_t align) const {
        const char* word = op == kConvForward        ? "conv_fwd"
                           : op == kConvBackwardData ? "conv_bwd_data"
                                                     : "conv_bwd_weight";
        return c10::str("{\"op\":\"", word, "\",\"n\":", n, ",\"c\":", c, ",\"k\":", k, ",\"in\":\"", joined(in),
                        "\",\"filter\":\"", joined(filter), "\",") +
               geometry.fields() + last_fields(dtype, has_bias, activation, align);
    }
};

inline at::MemoryFormat last_format(int64_t dims) {
    return dims == 2 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
}

// Whether a result is channels-last, as torch's convolutions choose it: if one of the operands is. torch has no such
// format for one dimension.
inline bool wants_last(const at::Tensor& a, const at::Tensor& b) {
    const auto is_last = [](const at::Tensor& x) {
        const at::MemoryFormat format = x.suggest_memory_format();
        return format == at::MemoryFormat::ChannelsLast || format == at::MemoryFormat::ChannelsLast3d;
    };
    return is_last(a) || is_last(b);
}

// x with its memory in the order N, sizes, C, without gaps.
inline at::Tensor last(const at::Tensor& x) {
    if (x.dim() > 3) return x.contiguous(last_format(x.dim() - 2));
    return x.transpose(1, 2).contiguous();
}

// The result, and where a kernel writes it: in the same memory, or in some that is copied afterwards.
class Output {
public:
    Output(at::IntArrayRef sizes, const at::TensorOptions& options, bool is_last) {
        const int64_t dims = static_cast<int64_t>(sizes.size()) - 2;
        if (is_last) {
            result_ = at::empty(sizes, options.memory_format(last_format(dims)));
            return;
        }
        const int64_t positions = c10::multiply_integers(sizes.slice(2));
        if (sizes[0] == 0 || sizes[1] <= 1 || positions <= 1) {  // both formats are the same memory
            result_ = at::empty(sizes, options);
            return;
        }
        Sizes other{sizes[0]};
        other.append(sizes.begin() + 2, sizes.end());
        other.push_back(sizes[1]);
        room_ = at::empty(other, options);
    }

    const at::Tensor& room() const { return room_.defined() ? room_ : result_; }

    at::Tensor finish() const { return room_.defined() ? room_.movedim(-1, 1).contiguous() : result_; }

private:
    at::Tensor result_, room_;
};

inline void run_conv(const Problem& p, const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias,
                     const at::Tensor& d, std::string_view activation, const at::Tensor& out) {
    const char* dtype = dtype_word(a, "x");
    Align align;
    align.add(a.const_data_ptr()), align.add(b.const_data_ptr()), align.add(out.const_data_ptr());
    if (bias.defined() && bias.numel() > 1) align.add(bias.const_data_ptr());
    if (d.defined()) align.add(d.const_data_ptr());
    Key key;
    start_key(key, p.op, a);
    for (const int64_t word : {align.bytes(), int64_t{bias.defined()}, int64_t{d.defined()}}) key.add(word);
    p.add_to(key);
    key.add(activation);
    const PlanPointer plan = find_plan(key, a.device(), d.defined(), activation,
                                       [&] { return p.text(dtype, bias.defined(), activation, align.bytes()); });
    tilewise_operands operands = TILEWISE_OPERANDS_INIT;
    operands.a = a.const_data_ptr();
    operands.b = b.const_data_ptr();
    operands.c = out.data_ptr();
    if (bias.defined()) operands.bias = bias.const_data_ptr();
    if (d.defined()) operands.d[0] = d.const_data_ptr();
    launch(*plan, operands, a);
}

inline int64_t check_dims(const at::Tensor& a, const char* name_a, const at::Tensor& b, const char* name_b) {
    const int64_t dims = a.dim() - 2;
    TORCH_CHECK_VALUE(dims >= 1 && dims <= kMostDims && b.dim() == a.dim(), name_a, " has ", a.dim(), " dimensions ",
                      a.sizes(), ", ", name_b, " has ", b.dim(), " ", b.sizes(), "; need the same, 3 to 5");
    check_like(b, name_b, a, name_a);
    return dims;
}

inline at::Tensor conv(const at::Tensor& x, const at::Tensor& w, const OptionalTensor& bias, const OptionalTensor& d,
                       at::IntArrayRef stride, at::IntArrayRef before, at::IntArrayRef after, at::IntArrayRef dilation,
                       int64_t groups, std::string_view activation) {
    const int64_t dims = check_dims(x, "x", w, "w");
    const Problem p{kConvForward,
                    x.size(0),
                    x.size(1),
                    w.size(0),
                    x.sizes().slice(2),
                    w.sizes().slice(2),
                    {stride, before, after, dilation, groups}};
    p.geometry.check(dims);
    TORCH_CHECK_VALUE(x.size(1) == w.size(1) * groups && w.size(0) % groups == 0, "x has ", x.size(1), " channels, w ",
                      w.sizes(), ", groups=", groups, "; need C = ", w.size(1), " * groups, and K divisible by groups");
    Sizes sizes{p.n, p.k};
    for (int64_t i = 0; i < dims; ++i) {
        sizes.push_back(p.positions(static_cast<std::size_t>(i)));
        TORCH_CHECK(sizes.back() > 0, "conv: x ", x.sizes(), " with padding ", before, ", ", after,
                    " is smaller than the filter ", p.filter, " with dilation ", dilation);
    }
    at::Tensor more;
    if (has(d)) {
        check_like(*d, "d", x, "x");
        TORCH_CHECK_VALUE(d->sizes() == at::IntArrayRef(sizes), "d: shape ", d->sizes(), ", need the output's ",
                          at::IntArrayRef(sizes));
        more = last(*d);
    }
    const at::Tensor shift = bias_of(bias, p.k, x, "x");
    const Output y(sizes, x.options(), wants_last(x, w));
    if (y.room().numel() > 0 && x.numel() > 0 && w.numel() > 0) {
        run_conv(p, last(x), last(w), shift, more, activation, y.room());
    } else {
        multiply_nothing(p.k > 0 ? y.room().numel() / p.k : 0, p.k, 'r', shift, more, activation, y.room());
    }
    return y.finish();
}

inline at::Tensor conv_backward_data(const at::Tensor& dy, const at::Tensor& w, const OptionalTensor& bias,
                                     at::IntArrayRef input_size, at::IntArrayRef stride, at::IntArrayRef before,
                                     at::IntArrayRef after, at::IntArrayRef dilation, int64_t groups,
                                     std::string_view activation) {
    const int64_t dims = check_dims(dy, "dy", w, "w");
    const Problem p{kConvBackwardData,
                    dy.size(0),
                    w.size(1) * groups,
                    dy.size(1),
                    input_size,
                    w.sizes().slice(2),
                    {stride, before, after, dilation, groups}};
    p.geometry.check(dims);
    TORCH_CHECK_VALUE(static_cast<int64_t>(input_size.size()) == dims, "input_size: ", input_size, "; need ", dims,
                      " numbers");
    TORCH_CHECK_VALUE(dy.size(1) == w.size(0) && w.size(0) % groups == 0, "dy has ", dy.size(1), " channels, w ",
                      w.sizes(), ", groups=", groups, "; need K = ", w.size(0), ", divisible by groups");
    Sizes sizes{p.n, p.c};
    sizes.append(input_size.begin(), input_size.end());
    const at::Tensor shift = bias_of(bias, p.c, dy, "dy");
    const Output dx(sizes, dy.options(), wants_last(dy, w));
    if (dx.room().numel() > 0 && dy.numel() > 0 && w.numel() > 0) {
        p.check_gradient(dy);
        run_conv(p, last(dy), last(w), shift, {}, activation, dx.room());
    } else {
        multiply_nothing(p.c > 0 ? dx.room().numel() / p.c : 0, p.c, 'r', shift, {}, activation, dx.room());
    }
    return dx.finish();
}

inline at::Tensor conv_backward_weight(const at::Tensor& x, const at::Tensor& dy, at::IntArrayRef filter_size,
                                       at::IntArrayRef stride, at::IntArrayRef before, at::IntArrayRef after,
                                       at::IntArrayRef dilation, int64_t groups) {
    const int64_t dims = check_dims(x, "x", dy, "dy");
    const Problem p{kConvBackwardWeight,
                    x.size(0),
                    x.size(1),
                    dy.size(1),
                    x.sizes().slice(2),
                    filter_size,
                    {stride, before, after, dilation, groups}};
    p.geometry.check(dims);
    TORCH_CHECK_VALUE(static_cast<int64_t>(filter_size.size()) == dims, "filter_size: ", filter_size, "; need ", dims,
                      " numbers");
    TORCH_CHECK_VALUE(x.size(0) == dy.size(0) && p.c % groups == 0 && p.k % groups == 0, "x ", x.sizes(), " and dy ",
                      dy.sizes(), " with groups=", groups,
                      " do not match; need as many images, and channels "
                      "divisible by groups");
    Sizes sizes{p.k, p.c / groups};
    sizes.append(filter_size.begin(), filter_size.end());
    const Output dw(sizes, x.options(), wants_last(x, dy));
    if (dw.room().numel() > 0 && x.numel() > 0 && dy.numel() > 0) {
        p.check_gradient(dy);
        run_conv(p, last(dy), last(x), {}, {}, "", dw.room());
    } else {
        dw.room().zero_();
    }
    return dw.finish();
}

}  // namespace tilewise_torch
