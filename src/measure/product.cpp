// SPDX-License-Identifier: MIT
#include "measure/product.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "problem/facts.hpp"

namespace tilewise {
namespace {

// A strip of columns of a depth block stays in the first-level cache, the blocks in the second.
constexpr std::int64_t kRowBlock = 128;
constexpr std::int64_t kColBlock = 256;
constexpr std::int64_t kDepthBlock = 256;

using Pack = double __attribute__((vector_size(kStrip * sizeof(double))));

// kStrip rows of a times one strip of b.
void add_strip(const double* a, const double* strip, std::int64_t depth, double* acc, std::int64_t acc_stride) {
    Pack sums[kStrip] = {};
    for (std::int64_t i = 0; i < depth; ++i) {
        Pack b;
        std::memcpy(&b, strip + i * kStrip, sizeof b);
        for (int r = 0; r < kStrip; ++r) sums[r] += a[r * depth + i] * b;
    }
    for (int r = 0; r < kStrip; ++r) {
        for (int c = 0; c < kStrip; ++c) acc[r * acc_stride + c] += sums[r][c];
    }
}

// Columns [first_col, first_col + cols) and depths [first, first + depth) of B as strips.
void load_strips(const Factors& factors, std::int64_t batch, std::int64_t first_col, std::int64_t cols,
                 std::int64_t first, std::int64_t depth, double* to) {
    double column[kDepthBlock];
    for (std::int64_t c = 0; c < in_strips(cols); ++c) {
        if (c < cols) {
            factors.read_column(batch, first_col + c, first, depth, column);
        } else {
            std::fill_n(column, depth, 0.0);
        }
        double* strip = to + c / kStrip * kStrip * depth + c % kStrip;
        for (std::int64_t i = 0; i < depth; ++i) strip[i * kStrip] = column[i];
    }
}

struct Workspace {
    std::vector<double> a = std::vector<double>(kRowBlock * kDepthBlock);
    std::vector<double> b = std::vector<double>(kColBlock * kDepthBlock);
    std::vector<double> sum = std::vector<double>(kRowBlock * kColBlock);
    std::vector<double> magnitude = sum, squares = sum;
};

template <class Change>
void change_all(std::vector<double>& values, std::int64_t count, Change change) {
    for (std::int64_t i = 0; i < count; ++i)
        values[static_cast<std::size_t>(i)] = change(values[static_cast<std::size_t>(i)]);
}

void compute_tile(const Factors& factors, std::int64_t k, ProductTile& tile, bool with_squares, Workspace& w) {
    const std::int64_t rows = in_strips(static_cast<std::int64_t>(tile.rows.size())), cols = in_strips(tile.cols);
    for (std::vector<double>* acc : {&w.sum, &w.magnitude, &w.squares}) std::fill_n(acc->begin(), rows * cols, 0.0);
    for (std::int64_t first = 0; first < k; first += kDepthBlock) {
        const std::int64_t depth = std::min(kDepthBlock, k - first);
        load_rows(factors, tile.batch, tile.rows, first, depth, w.a.data());
        load_strips(factors, tile.batch, tile.col_begin, tile.cols, first, depth, w.b.data());
        add_product(w.a.data(), rows, w.b.data(), cols, depth, w.sum.data());
        for (auto* side : {&w.a, &w.b}) {
            change_all(*side, (side == &w.a ? rows : cols) * depth, [](double x) { return std::abs(x); });
        }
        add_product(w.a.data(), rows, w.b.data(), cols, depth, w.magnitude.data());
        if (!with_squares) continue;
        for (auto* side : {&w.a, &w.b}) {
            change_all(*side, (side == &w.a ? rows : cols) * depth, [](double x) { return x * x; });
        }
        add_product(w.a.data(), rows, w.b.data(), cols, depth, w.squares.data());
    }
    tile.stride = cols;
    tile.sum = w.sum.data();
    tile.magnitude = w.magnitude.data();
    tile.squares = w.squares.data();
}

}  // namespace

void add_product(const double* a, std::int64_t rows, const double* b, std::int64_t cols, std::int64_t depth,
                 double* acc) {
    for (std::int64_t c = 0; c < cols; c += kStrip) {
        for (std::int64_t r = 0; r < rows; r += kStrip) {
            add_strip(a + r * depth, b + c * depth, depth, acc + r * cols + c, cols);
        }
    }
}

void load_rows(const Factors& factors, std::int64_t batch, std::span<const std::int64_t> rows, std::int64_t first,
               std::int64_t depth, double* to) {
    for (const std::int64_t row : rows) {
        factors.read_row(batch, row, first, depth, to);
        to += depth;
    }
    const auto count = static_cast<std::int64_t>(rows.size());
    std::fill_n(to, (in_strips(count) - count) * depth, 0.0);
}

void visit_products(const Tensors& tensors, std::span<const RowRef> rows, bool with_squares,
                    const std::function<bool(const ProductTile&)>& visit) {
    Workspace workspace;
    const GemmView view = gemm_view(tensors.problem());
    const std::unique_ptr<Factors> factors = make_factors(tensors);
    std::vector<std::int64_t> block;
    for (std::size_t next = 0; next < rows.size();) {
        const std::int64_t batch = rows[next].batch;
        block.clear();
        while (next < rows.size() && rows[next].batch == batch && block.size() < kRowBlock) {
            block.push_back(rows[next++].row);
        }
        for (std::int64_t col = 0; col < view.n; col += kColBlock) {
            ProductTile tile;
            tile.batch = batch;
            tile.rows = block;
            tile.col_begin = col;
            tile.cols = std::min(kColBlock, view.n - col);
            compute_tile(*factors, view.k, tile, with_squares, workspace);
            if (!visit(tile)) return;
        }
    }
}

}  // namespace tilewise
