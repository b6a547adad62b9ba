// SPDX-License-Identifier: MIT
#include "measure/projection.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "measure/element.hpp"
#include "measure/random_fill.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

// More rows to a block than in the full reference: projecting a column of B costs `width` decodings, done once per
// block.
constexpr std::int64_t kProjectedRows = 1024;
constexpr std::int64_t kGroupBlock = 128;
constexpr std::int64_t kProjectedDepth = 256;
constexpr std::int64_t kLeastWidth = 4;

constexpr double kUnit = 0x1p-24;

// Tolerances are at least 2.5 standard deviations of the errors of a right kernel, so this is a distance of over six.
constexpr double kAccused = 2.5;

// Whether one matrix serves the whole batch.
bool is_shared(const Problem& p, int operand) { return p.op == Op::gemm && batch_stride(p, operand) == 0; }

std::vector<double> norms(const Factors& factors, std::int64_t batch, std::int64_t count, std::int64_t length,
                          bool of_rows) {
    std::vector<double> result(static_cast<std::size_t>(count)), values(kProjectedDepth);
    for (std::int64_t i = 0; i < count; ++i) {
        double squares = 0;
        for (std::int64_t first = 0; first < length; first += kProjectedDepth) {
            const std::int64_t part = std::min(kProjectedDepth, length - first);
            if (of_rows) {
                factors.read_row(batch, i, first, part, values.data());
            } else {
                factors.read_column(batch, i, first, part, values.data());
            }
            for (std::int64_t j = 0; j < part; ++j)
                squares += values[static_cast<std::size_t>(j)] * values[static_cast<std::size_t>(j)];
        }
        result[static_cast<std::size_t>(i)] = std::sqrt(squares);
    }
    return result;
}

class Projection {
public:
    Projection(const Tensors& tensors, const ReferenceOptions& options, std::int64_t width, std::uint64_t seed)
        : tensors_(tensors),
          p_(tensors.problem()),
          view_(gemm_view(p_)),
          factors_(make_factors(tensors)),
          options_(options),
          width_(width),
          groups_((view_.n + width - 1) / width),
          signs_(static_cast<std::size_t>(view_.n)),
          a_(kProjectedRows * kProjectedDepth),
          b_(kGroupBlock * kProjectedDepth),
          sums_(kProjectedRows * kGroupBlock) {
        for (std::size_t j = 0; j < signs_.size(); ++j) signs_[j] = (random_bits(seed, j) & 1) != 0 ? 1 : -1;
        const ErrorModel model = error_model(p_, options.summation);
        // The bounds of tolerance.hpp with |a||b| for S and, as for even data, |a||b|*1.5/sqrt(k) for sqrt(Q).
        const double share = std::min(1.0, 6.0 / std::sqrt(static_cast<double>(view_.k)));
        relative_ = model.relative + 2 * model.input_unit * share;
        const bool plain = p_.scale == Scale::none && options.alpha == 1;
        exact_ = p_.dtype_a == DType::int8 && p_.dtype_out == DType::int32 && plain;
    }

    std::vector<RowRef> run() {
        std::vector<RowRef> found;
        for (std::int64_t batch = 0; batch < view_.batch; ++batch) {
            if (batch == 0 || !is_shared(p_, 1)) col_norms_ = norms(*factors_, batch, view_.n, view_.k, false);
            if (batch == 0 || !is_shared(p_, 0)) row_norms_ = norms(*factors_, batch, view_.m, view_.k, true);
            std::vector<char> accused(static_cast<std::size_t>(view_.m));
            for (std::int64_t group = 0; group < groups_; group += kGroupBlock) {
                const std::int64_t count = std::min(kGroupBlock, groups_ - group);
                for (std::int64_t row = 0; row < view_.m; row += kProjectedRows) {
                    look_at(batch, row, std::min(kProjectedRows, view_.m - row), group, count, accused);
                }
            }
            for (std::int64_t row = 0; row < view_.m; ++row) {
                if (accused[static_cast<std::size_t>(row)] != 0) found.push_back({batch, row});
            }
        }
        return found;
    }

private:
    void look_at(std::int64_t batch, std::int64_t first_row, std::int64_t rows, std::int64_t group, std::int64_t groups,
                 std::vector<char>& accused) {
        multiply(batch, first_row, rows, group, groups);
        for (std::int64_t r = 0; r < rows; ++r) {
            const std::int64_t row = first_row + r;
            const double* sums = sums_.data() + r * in_strips(groups);
            if (looks_wrong(batch, row, group, groups, sums)) accused[static_cast<std::size_t>(row)] = 1;
        }
    }

    void multiply(std::int64_t batch, std::int64_t first_row, std::int64_t rows, std::int64_t group,
                  std::int64_t groups) {
        std::vector<std::int64_t> list(static_cast<std::size_t>(rows));
        std::iota(list.begin(), list.end(), first_row);
        std::fill(sums_.begin(), sums_.end(), 0.0);
        for (std::int64_t first = 0; first < view_.k; first += kProjectedDepth) {
            const std::int64_t depth = std::min(kProjectedDepth, view_.k - first);
            load_rows(*factors_, batch, list, first, depth, a_.data());
            project_columns(batch, group, groups, first, depth);
            add_product(a_.data(), in_strips(rows), b_.data(), in_strips(groups), depth, sums_.data());
        }
    }

    // Groups of columns of B, each added up with its signs and scales, as strips.
    void project_columns(std::int64_t batch, std::int64_t group, std::int64_t groups, std::int64_t first,
                         std::int64_t depth) {
        double column[kProjectedDepth];
        std::fill_n(b_.begin(), in_strips(groups) * depth, 0.0);
        for (std::int64_t g = 0; g < groups; ++g) {
            double* strip = b_.data() + g / kStrip * kStrip * depth + g % kStrip;
            for (std::int64_t j = (group + g) * width_; j < std::min((group + g + 1) * width_, view_.n); ++j) {
                factors_->read_column(batch, j, first, depth, column);
                const double weight = signs_[static_cast<std::size_t>(j)] * col_scale(j);
                for (std::int64_t i = 0; i < depth; ++i) strip[i * kStrip] += weight * column[i];
            }
        }
    }

    bool looks_wrong(std::int64_t batch, std::int64_t row, std::int64_t group, std::int64_t groups,
                     const double* sums) {
        const std::int64_t begin = group * width_;
        const std::int64_t count = std::min((group + groups) * width_, view_.n) - begin;
        load_stretch(batch, row, begin, count);
        const double factor = row_factor(row);
        const double row_error = relative_ * std::abs(factor) * row_norms_[static_cast<std::size_t>(row)];
        const double row_size = exact_ ? 0 : 4 * kUnit * std::abs(factor) * row_norms_[static_cast<std::size_t>(row)];
        for (std::int64_t g = 0; g < groups; ++g) {
            double sum = 0, errors = 0, squares = 0;
            for (std::int64_t i = g * width_; i < std::min((g + 1) * width_, count); ++i) {
                const auto at = static_cast<std::size_t>(i), col = static_cast<std::size_t>(begin + i);
                if (!(std::abs(got_[at]) < largest_finite(p_.dtype_out))) return true;
                sum += signs_[col] * (got_[at] - added_[at]);
                const double norm = col_norms_[col] * std::abs(col_scale(begin + i));
                const double error = (row_error + row_size) * norm + element_error(at);
                errors += error;
                squares += error * error;
            }
            double off = std::abs(sum - factor * sums[g]);
            if (exact_) off = std::abs(wrapped(off));
            if (!(off <= std::min(errors, kAccused * std::sqrt(squares)))) return true;
        }
        return false;
    }

    // The part of an element's tolerance that does not come from the sum of products.
    double element_error(std::size_t at) const {
        if (exact_) return 0;
        const double size = std::abs(got_[at]);
        return 4 * kUnit * (size + sizes_[at]) +
               std::max(unit_roundoff(p_.dtype_out) * size, least_roundoff(p_.dtype_out));
    }

    // The result, and what was added to the product after it, with its size.
    void load_stretch(std::int64_t batch, std::int64_t row, std::int64_t begin, std::int64_t count) {
        const auto n = static_cast<std::size_t>(count);
        got_.resize(n);
        term_.resize(n);
        added_.assign(n, 0.0);
        sizes_.assign(n, 0.0);
        const auto load = [&](const MatrixView& m, double* to) {
            decode(m.type, m.at(batch, row, begin), m.col_stride, count, to);
        };
        const auto add = [&](double weight) {
            for (std::size_t i = 0; i < n; ++i) {
                added_[i] += weight * term_[i];
                sizes_[i] += std::abs(weight * term_[i]);
            }
        };
        load(tensors_.c(), got_.data());
        if (p_.beta && options_.beta != 0) {
            load(tensors_.original_c(), term_.data());
            add(double{options_.beta});
        }
        if (tensors_.bias() != nullptr) {
            const auto* first = static_cast<const std::byte*>(tensors_.bias(batch)) + begin * bytes_of(p_.dtype_out);
            decode(p_.dtype_out, first, 1, count, term_.data());
            add(1);
        }
        for (std::size_t i = 0; i < d_count(p_); ++i) {
            load(tensors_.d(i), term_.data());
            add(1);
        }
    }

    double col_scale(std::int64_t j) const {
        return p_.scale == Scale::none ? 1.0 : double{tensors_.scale_b()[p_.scale == Scale::row ? j : 0]};
    }
    double row_factor(std::int64_t i) const {
        const double scale = p_.scale == Scale::none ? 1.0 : double{tensors_.scale_a()[p_.scale == Scale::row ? i : 0]};
        return double{options_.alpha} * scale;
    }

    const Tensors& tensors_;
    const Problem& p_;
    GemmView view_;
    std::unique_ptr<Factors> factors_;
    ReferenceOptions options_;
    std::int64_t width_, groups_;
    std::vector<double> signs_, a_, b_, sums_, row_norms_, col_norms_;
    std::vector<double> got_, term_, added_, sizes_;
    double relative_ = 0;
    bool exact_ = false;
};

}  // namespace

bool is_projectable(const Problem& p) {
    const auto is_sum = [](EpilogueOp op) { return op == EpilogueOp::bias || op == EpilogueOp::add; };
    return p.dtype_out != DType::int8 && std::all_of(p.epilogue.begin(), p.epilogue.end(), is_sum);
}

std::int64_t projection_width(const Problem& p, double multiply_adds) {
    std::int64_t width = kLeastWidth;
    while (flops(p) / 2 / static_cast<double>(width) > multiply_adds && width < gemm_view(p).n) width *= 2;
    return width;
}

std::vector<RowRef> suspicious_rows(const Tensors& tensors, const ReferenceOptions& options, std::int64_t width,
                                    std::uint64_t seed) {
    return Projection(tensors, options, width, seed).run();
}

std::vector<RowRef> unfinished_rows(const Tensors& tensors) {
    const Problem& p = tensors.problem();
    const MatrixView c = tensors.c();
    // int8 has no value to spare: its poison is also a result.
    const double poison = p.dtype_out == DType::int32 ? decode(DType::int32, poison_bits(DType::int32)) : HUGE_VAL;
    std::vector<RowRef> found;
    const std::int64_t n = gemm_view(p).n;
    std::vector<double> row(static_cast<std::size_t>(n));
    for (const RowRef& ref : all_rows(p)) {
        decode(c.type, c.at(ref.batch, ref.row, 0), c.col_stride, n, row.data());
        const auto odd = [&](double x) { return !std::isfinite(x) || x == poison; };
        if (std::any_of(row.begin(), row.end(), odd)) found.push_back(ref);
    }
    return found;
}

}  // namespace tilewise
