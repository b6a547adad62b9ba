// SPDX-License-Identifier: MIT
// Sums of products in double, for the reference: operands are decoded block by block and multiplied by a plain loop
// over registers. Each sum comes with the sizes its error bound needs. Shares nothing with the kernels it judges.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "measure/factors.hpp"
#include "measure/tensors.hpp"

namespace tilewise {

// Columns are kept in strips of this many, rows in groups; blocks are filled up with zeros.
inline constexpr std::int64_t kStrip = 4;
constexpr std::int64_t in_strips(std::int64_t count) { return (count + kStrip - 1) / kStrip * kStrip; }

// acc(rows x cols) += a(rows x depth) * b(depth x cols), rows and cols multiples of kStrip; a and acc are stored by
// rows, b strip by strip.
void add_product(const double* a, std::int64_t rows, const double* b, std::int64_t cols, std::int64_t depth,
                 double* acc);

// Elements [first, first + depth) of rows of A, one row behind the other, filled up with rows of zeros.
void load_rows(const Factors& factors, std::int64_t batch, std::span<const std::int64_t> rows, std::int64_t first,
               std::int64_t depth, double* to);

// A row of the output.
struct RowRef {
    std::int64_t batch = 0, row = 0;

    auto operator<=>(const RowRef&) const = default;
};

// Some rows of one batch entry, and some columns of them. Values of row r begin at index r * stride.
struct ProductTile {
    std::int64_t batch = 0;
    std::span<const std::int64_t> rows;
    std::int64_t col_begin = 0, cols = 0, stride = 0;
    const double* sum = nullptr;        // of a*b
    const double* magnitude = nullptr;  // of |a*b|
    const double* squares = nullptr;    // of (a*b)^2; zeros when not asked for
};

// Visits every column of the rows given, in tiles; rows of one batch entry should follow each other. The visitor says
// whether to go on.
void visit_products(const Tensors& tensors, std::span<const RowRef> rows, bool with_squares,
                    const std::function<bool(const ProductTile&)>& visit);

}  // namespace tilewise
