// SPDX-License-Identifier: MIT
// tilewise::gemm and tilewise::linear on tensors of a device.
#pragma once

#include <ATen/ops/zeros.h>

#include "operands.hpp"

namespace tilewise_torch {

// A stored matrix, or a batch of them, whose rows are as a kernel reads them.
struct Matrix {
    at::Tensor x;
    int64_t batch = 1, rows = 1, columns = 1;
    int64_t leading = 1;       // from one row to the next
    int64_t batch_stride = 0;  // 0: one serves the batch

    void add_to(Key& key) const {
        key.add(leading);
        key.add(batch_stride);
    }
    std::string fields(const char* letter, int64_t batches) const {
        std::string text;
        if (leading != columns) text += c10::str("\"ld", letter, "\":", leading, ",");
        if (batches > 1 && batch_stride != rows * leading) {
            text += c10::str("\"batch_stride_", letter, "\":", batch_stride, ",");
        }
        return text;
    }
};

// One row's stride means nothing.
inline int64_t leading_of(int64_t rows, int64_t stride, int64_t columns) { return rows > 1 ? stride : columns; }

inline bool rows_are_readable(int64_t rows, int64_t stride, int64_t columns, int64_t step) {
    return (step == 1 || columns == 1) && (rows == 1 || stride >= columns);
}

inline Matrix matrix_of(const at::Tensor& given, const char* name) {
    TORCH_CHECK_VALUE(given.dim() == 2 || given.dim() == 3, name, ": ", given.dim(), " dimensions ", given.sizes(),
                      "; need 2, or 3 with a batch");
    Matrix m;
    m.x = rows_are_readable(given.size(-2), given.stride(-2), given.size(-1), given.stride(-1)) ? given
                                                                                                : given.contiguous();
    m.rows = m.x.size(-2), m.columns = m.x.size(-1);
    m.leading = leading_of(m.rows, m.x.stride(-2), m.columns);
    if (m.x.dim() == 3) {
        m.batch = m.x.size(0);
        m.batch_stride = m.batch > 1 ? m.x.stride(0) : 0;
    }
    return m;
}

struct Product {
    int64_t m = 0, n = 0, k = 0, batch = 1;
    std::string_view layout;
};

inline std::string gemm_text(const Product& p, const Matrix& a, const Matrix& b, const char* dtype, bool has_bias,
                             std::string_view activation, int64_t align) {
    std::string text = c10::str("{\"op\":\"gemm\",\"m\":", p.m, ",\"n\":", p.n, ",\"k\":", p.k, ",\"batch\":", p.batch,
                                ",\"layout\":\"", p.layout, "\",");
    return text + a.fields("a", p.batch) + b.fields("b", p.batch) + last_fields(dtype, has_bias, activation, align);
}

// out = activation(a b + bias), d where activation takes it; k > 0.
inline void multiply(const Product& p, const Matrix& a, const Matrix& b, const at::Tensor& bias, const at::Tensor& d,
                     std::string_view activation, const at::Tensor& out) {
    const char* dtype = dtype_word(a.x, "a");
    Align align;
    align.add(a.x.const_data_ptr()), align.add(b.x.const_data_ptr()), align.add(out.const_data_ptr());
    if (bias.defined() && p.n > 1) align.add(bias.const_data_ptr());
    if (d.defined()) align.add(d.const_data_ptr());
    Key key;
    start_key(key, kGemm, a.x);
    for (const int64_t word : {p.m, p.n, p.k, p.batch, align.bytes(), int64_t{bias.defined()}, int64_t{d.defined()}}) {
        key.add(word);
    }
    key.add(p.layout);
    a.add_to(key), b.add_to(key);
    key.add(activation);
    const PlanPointer plan = find_plan(key, a.x.device(), d.defined(), activation, [&] {
        return gemm_text(p, a, b, dtype, bias.defined(), activation, align.bytes());
    });
    tilewise_operands operands = TILEWISE_OPERANDS_INIT;
    operands.a = a.x.const_data_ptr();
    operands.b = b.x.const_data_ptr();
    operands.c = out.data_ptr();
    if (bias.defined()) operands.bias = bias.const_data_ptr();
    if (d.defined()) operands.d[0] = d.const_data_ptr();
    launch(*plan, operands, a.x);
}

// The same where there is nothing to sum: a product of zeros, so that what follows the sums is the library's. `out` holds
// m rows of n without gaps, or n rows of m where the layout's last letter is c.
inline void multiply_nothing(int64_t m, int64_t n, char letter, const at::Tensor& bias, const at::Tensor& d,
                             std::string_view activation, const at::Tensor& out) {
    if (out.numel() == 0) return;
    Product p;
    p.m = m, p.n = n, p.k = 1;
    p.layout = letter == 'r' ? "rcr" : "rcc";
    const auto zeros = [&](int64_t rows) { return matrix_of(at::zeros({rows, 1}, out.options()), "zeros"); };
    multiply(p, zeros(m), zeros(n), bias, d, activation, out);
}

inline at::Tensor gemm(const at::Tensor& a, const at::Tensor& b, std::string_view layout, const OptionalTensor& bias,
                       std::string_view activation) {
    TORCH_CHECK_VALUE(layout.size() == 3 && layout.find_first_not_of("rc") == std::string_view::npos, "layout: '",
                      layout, "'; need three letters of r and c, for A, B and C");
    const Matrix left = matrix_of(a, "a"), right = matrix_of(b, "b");
    check_like(b, "b", a, "a");
    Product p;
    p.layout = layout;
    int64_t k_of_b = right.rows;
    p.m = left.rows, p.k = left.columns, p.n = right.columns;
    if (layout[0] == 'c') std::swap(p.m, p.k);
    if (layout[1] == 'c') std::swap(k_of_b, p.n);
    TORCH_CHECK_VALUE(p.k == k_of_b, "a ", a.sizes(), " and b ", b.sizes(), " do not match in layout ", layout,
                      ": a has k=", p.k, ", b has k=", k_of_b);
    TORCH_CHECK_VALUE(left.batch == right.batch || left.batch == 1 || right.batch == 1, "a has a batch of ", left.batch,
                      ", b of ", right.batch, "; need the same, or 1");
    p.batch = left.batch == 1 ? right.batch : left.batch;
    c10::SmallVector<int64_t, 3> sizes;
    if (a.dim() == 3 || b.dim() == 3) sizes.push_back(p.batch);
    sizes.push_back(layout[2] == 'r' ? p.m : p.n);
    sizes.push_back(layout[2] == 'r' ? p.n : p.m);
    const at::Tensor out = at::empty(sizes, a.options());
    const at::Tensor shift = bias_of(bias, p.n, a, "a");
    if (p.k > 0 && out.numel() > 0) {
        multiply(p, left, right, shift, {}, activation, out);
    } else if (layout[2] == 'r') {
        multiply_nothing(p.batch * p.m, p.n, 'r', shift, {}, activation, out);
    } else {
        for (int64_t i = 0; i < p.batch; ++i) {
            multiply_nothing(p.m, p.n, 'c', shift, {}, activation, out.dim() == 3 ? out.select(0, i) : out);
        }
    }
    return out;
}

// x (..., in) as rows of one matrix: where its dimensions before the last are even steps, without a copy.
inline Matrix rows_of(const at::Tensor& given) {
    const int64_t dims = given.dim(), columns = given.size(-1);
    Matrix m;
    m.x = given;
    m.columns = columns;
    bool even = true;
    int64_t step = 0;  // from one row to the next
    for (int64_t i = dims - 2; i >= 0; --i) {
        if (given.size(i) == 1) continue;
        if (step == 0) {
            step = given.stride(i);
        } else {
            even = even && given.stride(i) == step * m.rows;
        }
        m.rows *= given.size(i);
    }
    m.leading = leading_of(m.rows, step, columns);
    if (!even || !rows_are_readable(m.rows, m.leading, columns, given.stride(-1))) {
        m.x = given.contiguous();
        m.leading = columns;
    }
    return m;
}

inline at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                         const OptionalTensor& d, std::string_view activation) {
    TORCH_CHECK_VALUE(weight.dim() == 2 && x.dim() >= 1 && x.size(-1) == weight.size(1), "x ", x.sizes(),
                      " and weight ", weight.sizes(), " do not match; need (..., in) and (out, in)");
    check_like(weight, "weight", x, "x");
    Product p;
    p.n = weight.size(0), p.k = weight.size(1);
    const Matrix left = rows_of(x);
    p.m = left.rows;
    // A transposed weight is read as it lies.
    const bool transposed = weight.stride(0) == 1 && weight.stride(1) >= p.n && weight.stride(1) > 1;
    p.layout = transposed ? "rrr" : "rcr";
    const Matrix right = matrix_of(transposed ? weight.t() : weight, "weight");
    c10::SmallVector<int64_t, 6> sizes(x.sizes().begin(), x.sizes().end());
    sizes.back() = p.n;
    at::Tensor more;
    if (has(d)) {
        check_like(*d, "d", x, "x");
        TORCH_CHECK_VALUE(d->sizes() == at::IntArrayRef(sizes), "d: shape ", d->sizes(), ", need the output's ",
                          at::IntArrayRef(sizes));
        more = d->contiguous();
    }
    const at::Tensor out = at::empty(sizes, x.options());
    const at::Tensor shift = bias_of(bias, p.n, x, "x");
    if (p.k > 0 && out.numel() > 0) {
        multiply(p, left, right, shift, more, activation, out);
    } else {
        multiply_nothing(p.m, p.n, 'r', shift, more, activation, out);
    }
    return out;
}

}  // namespace tilewise_torch
