// SPDX-License-Identifier: MIT
#include "measure/reference.hpp"

#include <cstddef>

#include "measure/element.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

// Takes sums of products through everything that follows them, one stretch of a row at a time.
class Finisher {
public:
    Finisher(const Tensors& tensors, const ReferenceOptions& options)
        : tensors_(tensors),
          steps_(finish_steps(tensors.problem(), options)),
          model_(error_model(tensors.problem(), options.summation)) {}

    const ErrorModel& model() const { return model_; }

    void finish(const ProductTile& tile, std::size_t r, Bounded* out) {
        const std::int64_t row = tile.rows[r];
        const std::size_t offset = r * static_cast<std::size_t>(tile.stride);
        load(tile.batch, row, tile.col_begin, tile.cols);
        for (std::size_t i = 0; i < static_cast<std::size_t>(tile.cols); ++i) {
            const Bounded sum =
                accumulated(model_, tile.sum[offset + i], tile.magnitude[offset + i], tile.squares[offset + i]);
            out[i] = finish_one(sum, row, tile.col_begin, i);
        }
    }

private:
    // Decodes what is added to or multiplied with the stretch.
    void load(std::int64_t batch, std::int64_t row, std::int64_t col, std::int64_t count) {
        const auto load_row = [&](const MatrixView& m, std::vector<double>& to) {
            to.resize(static_cast<std::size_t>(count));
            decode(m.type, m.at(batch, row, col), m.col_stride, count, to.data());
        };
        const Problem& p = tensors_.problem();
        if (steps_.beta != 0) load_row(tensors_.original_c(), c_);
        if (tensors_.bias() != nullptr) {
            bias_.resize(static_cast<std::size_t>(count));
            const auto* first = static_cast<const std::byte*>(tensors_.bias(batch)) + col * bytes_of(p.dtype_out);
            decode(p.dtype_out, first, 1, count, bias_.data());
        }
        d_.resize(d_count(p));
        for (std::size_t i = 0; i < d_.size(); ++i) load_row(tensors_.d(i), d_[i]);
    }

    Bounded finish_one(Bounded x, std::int64_t row, std::int64_t col_begin, std::size_t i) const {
        FinishTerms terms;
        if (steps_.scale != KernelScale::none) {
            const bool per_row = steps_.scale == KernelScale::row;
            terms.scale_a = double{tensors_.scale_a()[per_row ? row : 0]};
            terms.scale_b = double{tensors_.scale_b()[per_row ? col_begin + static_cast<std::int64_t>(i) : 0]};
        }
        if (!c_.empty()) terms.c = c_[i];
        if (!bias_.empty()) terms.bias = bias_[i];
        for (std::size_t t = 0; t < d_.size(); ++t) terms.d[t] = d_[t][i];
        return finished(steps_, terms, x);
    }

    const Tensors& tensors_;
    FinishSteps steps_;
    ErrorModel model_;
    std::vector<double> c_, bias_;
    std::vector<std::vector<double>> d_;
};

}  // namespace

FinishSteps finish_steps(const Problem& p, const ReferenceOptions& options) {
    FinishSteps steps;
    steps.alpha = options.alpha;
    steps.beta = p.beta ? options.beta : 0;
    steps.scale = kernel_scale(p.scale);
    for (std::size_t i = 0; i < p.epilogue.size(); ++i) steps.ops[i] = kernel_op(p.epilogue[i]);
    return steps;
}

void visit_reference(const Tensors& tensors, std::span<const RowRef> rows, const ReferenceOptions& options,
                     const std::function<bool(const ReferenceTile&)>& visit) {
    Finisher finisher(tensors, options);
    std::vector<Bounded> values;
    visit_products(tensors, rows, finisher.model().input_unit != 0, [&](const ProductTile& tile) {
        const auto cols = static_cast<std::size_t>(tile.cols);
        values.resize(tile.rows.size() * cols);
        for (std::size_t r = 0; r < tile.rows.size(); ++r) finisher.finish(tile, r, values.data() + r * cols);
        return visit({tile.batch, tile.rows, tile.col_begin, tile.cols, values});
    });
}

std::vector<Bounded> reference_rows(const Tensors& tensors, std::span<const RowRef> rows,
                                    const ReferenceOptions& options) {
    const auto n = static_cast<std::size_t>(gemm_view(tensors.problem()).n);
    std::vector<Bounded> result(rows.size() * n);
    std::size_t done = 0;  // rows whose columns are all there
    visit_reference(tensors, rows, options, [&](const ReferenceTile& tile) {
        const auto cols = static_cast<std::size_t>(tile.cols), begin = static_cast<std::size_t>(tile.col_begin);
        for (std::size_t r = 0; r < tile.rows.size(); ++r) {
            std::copy_n(tile.values.begin() + static_cast<std::ptrdiff_t>(r * cols), cols,
                        result.begin() + static_cast<std::ptrdiff_t>((done + r) * n + begin));
        }
        if (begin + cols == n) done += tile.rows.size();
        return true;
    });
    return result;
}

std::vector<RowRef> all_rows(const Problem& problem) {
    std::vector<RowRef> rows;
    const GemmView view = gemm_view(problem);
    rows.reserve(static_cast<std::size_t>(view.batch * view.m));
    for (std::int64_t batch = 0; batch < view.batch; ++batch) {
        for (std::int64_t row = 0; row < view.m; ++row) rows.push_back({batch, row});
    }
    return rows;
}

std::vector<double> reference_result(const Tensors& tensors, const ReferenceOptions& options) {
    const std::vector<Bounded> bounded = reference_rows(tensors, all_rows(tensors.problem()), options);
    std::vector<double> values;
    values.reserve(bounded.size());
    for (const Bounded& b : bounded) values.push_back(b.value);
    return values;
}

}  // namespace tilewise
