// SPDX-License-Identifier: MIT
#include "measure/known_result.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "measure/element.hpp"
#include "measure/reference.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

constexpr std::int64_t kSampledRows = 8;
// Two results may each be off, and rows that were not sampled may be allowed a little more.
constexpr double kApart = 2 * 2;

template <class Visit>
void each_row(const Tensors& tensors, Visit visit) {
    const GemmView view = gemm_view(tensors.problem());
    const MatrixView c = tensors.c();
    std::vector<double> values(static_cast<std::size_t>(view.n));
    for (std::int64_t row = 0; row < view.batch * view.m; ++row) {
        decode(c.type, c.at(row / view.m, row % view.m, 0), c.col_stride, view.n, values.data());
        visit(row, values);
    }
}

bool is_unwritten(const MatrixView& c, std::int64_t batch, std::int64_t row, std::int64_t col) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, c.at(batch, row, col), static_cast<std::size_t>(bytes_of(c.type)));
    return bits == poison_bits(c.type);
}

}  // namespace

// The first and the last row are among the few.
double apart_at_most(const Tensors& tensors, float alpha, float beta, const Summation& summation) {
    const GemmView view = gemm_view(tensors.problem());
    const std::int64_t all = view.batch * view.m, count = std::min(all, kSampledRows);
    std::vector<RowRef> rows;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t row = count == 1 ? 0 : i * (all - 1) / (count - 1);
        rows.push_back({row / view.m, row % view.m});
    }
    double error = 0;
    for (const Bounded& value : reference_rows(tensors, rows, {alpha, beta, summation})) {
        error = std::max(error, value.error);
    }
    return kApart * error;
}

KnownResult::KnownResult(const Tensors& tensors, float alpha, float beta, const Summation& summation)
    : apart_(apart_at_most(tensors, alpha, beta, summation)) {
    each_row(tensors, [&](std::int64_t, const std::vector<double>& row) {
        values_.insert(values_.end(), row.begin(), row.end());
    });
}

VerifyReport KnownResult::compare(const Tensors& tensors) const {
    VerifyReport report;
    report.method = VerifyMethod::known_result;
    if (const Status guards = tensors.check_guards(); !guards) report.guards = guards.error().message;
    const GemmView view = gemm_view(tensors.problem());
    const MatrixView c = tensors.c();
    const KernelDType type = kernel_dtype(c.type);
    const double* known = values_.data();
    each_row(tensors, [&](std::int64_t row, const std::vector<double>& values) {
        for (std::size_t i = 0; i < values.size(); ++i, ++known, ++report.checked) {
            const Bounded expected = beside(type, *known, apart_);
            const bool right = agrees(type, expected, values[i]);
            const double error = error_of(expected, values[i], right);
            if (error > report.max_error) {
                report.max_error = error;
                report.tolerance = tolerance_of(type, expected);
                report.max_ratio = ratio_of(error, report.tolerance, right);
            }
            if (right) continue;
            if (report.failed++ > 0) continue;
            const std::int64_t batch = row / view.m, line = row % view.m, col = static_cast<std::int64_t>(i);
            report.failure = VerifyFailure{
                batch, line, col, *known, values[i], tolerance_of(type, expected), is_unwritten(c, batch, line, col)};
        }
    });
    report.ok = report.failed == 0 && report.guards.empty();
    return report;
}

}  // namespace tilewise
