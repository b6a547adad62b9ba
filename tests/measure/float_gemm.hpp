// SPDX-License-Identifier: MIT
// A GEMM as a plain kernel would do it: fp32 (or int32) sums in order of k, the epilogue in fp32. The tests judge it
// with the reference, which shares no arithmetic with it, and break it on purpose.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure/element.hpp"
#include "measure/tensors.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {

struct FloatGemm {
    float alpha = 1, beta = 0;
    int split_k = 1;
    std::int64_t dropped = 0;  // products left out at the end of k
    bool cut_inputs = false;   // to tf32
    bool cut_sums = false;     // after every 32 products, to the 13 bits that matrix units may keep of 8-bit floats
    int bias_shift = 0;
};

// fp32 unless the text says otherwise.
inline Problem problem_of(const std::string& text) {
    auto problem = parse_problem(text.find("dtype=") == std::string::npos ? text + ",dtype=fp32" : text);
    if (!problem) throw std::runtime_error(text + ": " + problem.error().message);
    return *problem;
}

inline Tensors tensors_for(const std::string& text, std::uint64_t seed = 1) {
    auto tensors = Tensors::make(problem_of(text), seed);
    if (!tensors) throw std::runtime_error(text + ": " + tensors.error().message);
    return std::move(*tensors);
}

inline double element(const MatrixView& m, std::int64_t batch, std::int64_t row, std::int64_t col) {
    double value = 0;
    decode(m.type, m.at(batch, row, col), 1, 1, &value);
    return value;
}
inline void set_element(const MatrixView& m, std::int64_t batch, std::int64_t row, std::int64_t col, double value) {
    encode(m.type, &value, 1, m.at(batch, row, col));
}

inline float activate(EpilogueOp op, float x) {
    switch (op) {
        case EpilogueOp::bias:
        case EpilogueOp::add:
        case EpilogueOp::mul: return x;
        case EpilogueOp::relu: return x < 0 ? 0 : x;
        case EpilogueOp::relu6: return x < 0 ? 0 : x > 6 ? 6 : x;
        case EpilogueOp::gelu: return 0.5f * x * (1 + std::erf(x * 0.70710678f));
        case EpilogueOp::gelu_tanh: return 0.5f * x * (1 + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
        case EpilogueOp::silu: return x / (1 + std::exp(-x));
        case EpilogueOp::sigmoid: return 1 / (1 + std::exp(-x));
        case EpilogueOp::tanh: return std::tanh(x);
        case EpilogueOp::hardswish: return x * std::min(std::max(x + 3, 0.0f), 6.0f) / 6;
    }
    return x;
}

constexpr int kTf32Bits = 10;
constexpr int kCutSumBits = 13;

inline float cut(float x, int bits) {  // to so many after the point
    std::uint32_t stored;
    std::memcpy(&stored, &x, 4);
    stored &= ~std::uint32_t{0} << (23 - bits);
    std::memcpy(&x, &stored, 4);
    return x;
}

inline float finish(const Tensors& t, const FloatGemm& how, float x, std::int64_t batch, std::int64_t i,
                    std::int64_t j) {
    const Problem& p = t.problem();
    const bool per_row = p.scale == Scale::row;
    float factor = how.alpha;
    if (p.scale != Scale::none) factor *= t.scale_a()[per_row ? i : 0] * t.scale_b()[per_row ? j : 0];
    x *= factor;
    if (p.beta && how.beta != 0) x += how.beta * static_cast<float>(element(t.original_c(), batch, i, j));
    std::size_t d = 0;
    for (const EpilogueOp op : p.epilogue) {
        if (reads_d(op)) {
            const auto term = static_cast<float>(element(t.d(d++), batch, i, j));
            x = op == EpilogueOp::add ? x + term : x * term;
        } else if (op == EpilogueOp::bias) {
            double bias = 0;
            const std::int64_t at = (j + how.bias_shift) % p.gemm.n;
            decode(p.dtype_out, static_cast<const std::byte*>(t.bias()) + at * bytes_of(p.dtype_out), 1, 1, &bias);
            x += static_cast<float>(bias);
        } else {
            x = activate(op, x);
        }
    }
    return x;
}

inline std::vector<float> as_floats(const MatrixView& m, std::int64_t batch, std::int64_t rows, std::int64_t cols) {
    std::vector<float> values;
    std::vector<double> row(static_cast<std::size_t>(cols));
    for (std::int64_t i = 0; i < rows; ++i) {
        decode(m.type, m.at(batch, i, 0), m.col_stride, cols, row.data());
        values.insert(values.end(), row.begin(), row.end());
    }
    return values;
}

// Writes C.
inline void run_float_gemm(const Tensors& t, const FloatGemm& how = {}) {
    const Problem& p = t.problem();
    const std::int64_t m = p.gemm.m, n = p.gemm.n, k = p.gemm.k - how.dropped;
    const std::int64_t part = (k + how.split_k - 1) / how.split_k;
    const bool whole = p.dtype_a == DType::int8;
    for (std::int64_t batch = 0; batch < p.gemm.batch; ++batch) {
        std::vector<float> a = as_floats(t.a(), batch, m, p.gemm.k), b = as_floats(t.b(), batch, p.gemm.k, n);
        if (how.cut_inputs) {
            for (float& x : a) x = cut(x, kTf32Bits);
            for (float& x : b) x = cut(x, kTf32Bits);
        }
        std::vector<float> sums(static_cast<std::size_t>(n)), total(sums);
        std::vector<double> exact(sums.size());
        for (std::int64_t i = 0; i < m; ++i) {
            std::fill(total.begin(), total.end(), 0.0f);
            std::fill(exact.begin(), exact.end(), 0.0);
            for (std::int64_t first = 0; first < k; first += part) {
                std::fill(sums.begin(), sums.end(), 0.0f);
                for (std::int64_t q = first; q < std::min(first + part, k); ++q) {
                    const float left = a[static_cast<std::size_t>(i * p.gemm.k + q)];
                    const float* right = b.data() + q * n;
                    for (std::size_t j = 0; j < sums.size(); ++j) {
                        if (whole) exact[j] += double{left} * double{right[j]};
                        if (!whole) sums[j] += left * right[j];
                        if (how.cut_sums && q % 32 == 31) sums[j] = cut(sums[j], kCutSumBits);
                    }
                }
                for (std::size_t j = 0; j < sums.size(); ++j) total[j] += sums[j];
            }
            for (std::int64_t j = 0; j < n; ++j) {
                const auto at = static_cast<std::size_t>(j);
                const bool plain = whole && how.alpha == 1 && p.scale == Scale::none && !p.beta && p.epilogue.empty();
                const auto sum = whole ? static_cast<float>(exact[at]) : total[at];
                set_element(t.c(), batch, i, j, plain ? exact[at] : double{finish(t, how, sum, batch, i, j)});
            }
        }
    }
}

}  // namespace tilewise
