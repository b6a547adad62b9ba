// SPDX-License-Identifier: MIT
#include "measure/verify.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>
#include <vector>

#include "measure/element.hpp"
#include "measure/projection.hpp"
#include "measure/random_fill.hpp"
#include "measure/reference.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

// Finishing and comparing an element costs so many multiply-adds.
constexpr double kElementWork = 64;

// Gathering an element of a convolution's A and B: positions are worked out and looked up one by one. An element of A is
// gathered for each row, one of B once for a block of rows.
constexpr double kGatherWork = 8;
constexpr double kBlockRows = 128;

double gather_work(const Problem& p) {
    if (p.op == Op::gemm) return 0;
    const GemmView view = gemm_view(p);
    const double columns = static_cast<double>(view.n) / std::min(kBlockRows, static_cast<double>(view.m));
    return kGatherWork * static_cast<double>(view.k) * (1 + columns);
}

double all_rows_of(double row, const GemmView& view) { return row * static_cast<double>(view.batch * view.m); }

double row_work(const Problem& p) {
    const GemmView view = gemm_view(p);
    return static_cast<double>(view.n) * (static_cast<double>(view.k) + kElementWork) + gather_work(p);
}

bool is_poison(const MatrixView& c, std::int64_t batch, std::int64_t row, std::int64_t col) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, c.at(batch, row, col), static_cast<std::size_t>(bytes_of(c.type)));
    return bits == poison_bits(c.type);
}

// Compares tiles of the reference with C and keeps the account.
class Judge {
public:
    Judge(const Tensors& tensors, VerifyReport& report) : c_(tensors.c()), report_(report) {}

    void compare(const ReferenceTile& tile) {
        got_.resize(static_cast<std::size_t>(tile.cols));
        for (std::size_t r = 0; r < tile.rows.size(); ++r) {
            const std::int64_t row = tile.rows[r];
            decode(c_.type, c_.at(tile.batch, row, tile.col_begin), c_.col_stride, tile.cols, got_.data());
            for (std::size_t i = 0; i < got_.size(); ++i) {
                const Bounded& expected = tile.values[r * got_.size() + i];
                compare_one(expected, got_[i], tile.batch, row, tile.col_begin + static_cast<std::int64_t>(i));
            }
        }
    }

private:
    void compare_one(const Bounded& expected, double got, std::int64_t batch, std::int64_t row, std::int64_t col) {
        if (report_.checked++ == 0) report_.tolerance = tolerance_of(c_.type, expected);  // shown if no error comes
        const bool right = agrees(c_.type, expected, got);
        const double error = error_of(expected, got, right);
        if (right && (error == 0 || error <= report_.max_ratio * expected.error)) return;  // not the worst so far
        const double tolerance = tolerance_of(c_.type, expected);
        account(error, tolerance, ratio_of(error, tolerance, right));
        if (right) return;
        ++report_.failed;
        const auto place = std::tuple(batch, row, col);
        if (!report_.failure ||
            place < std::tuple(report_.failure->batch, report_.failure->row, report_.failure->col)) {
            report_.failure =
                VerifyFailure{batch, row, col, expected.value, got, tolerance, is_poison(c_, batch, row, col)};
        }
    }

    void account(double error, double tolerance, double ratio) {
        if (ratio <= report_.max_ratio) return;
        report_.max_ratio = ratio;
        report_.max_error = error;
        report_.tolerance = tolerance;
    }

    MatrixView c_;
    VerifyReport& report_;
    std::vector<double> got_;
};

// One row at random out of each of `count` equal parts of all rows, and the first and the last.
std::vector<RowRef> sampled(const Problem& p, std::int64_t count, std::uint64_t seed) {
    const GemmView view = gemm_view(p);
    const std::int64_t all = view.batch * view.m;
    count = std::clamp<std::int64_t>(count, 1, all);
    std::vector<RowRef> rows = {{0, 0}};
    for (std::int64_t i = 0; i < count; ++i) {
        const double at = (static_cast<double>(i) + random_unit(seed, static_cast<std::uint64_t>(i))) /
                          static_cast<double>(count) * static_cast<double>(all);
        const std::int64_t row = std::min(static_cast<std::int64_t>(at), all - 1);
        rows.push_back({row / view.m, row % view.m});
    }
    rows.push_back({view.batch - 1, view.m - 1});
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    return rows;
}

std::vector<RowRef> rows_to_check(const Tensors& tensors, const ReferenceOptions& reference,
                                  const VerifyOptions& options, VerifyReport& report) {
    const Problem& p = tensors.problem();
    if (full_work(p) <= options.full_work) {
        report.method = VerifyMethod::every_element;
        return all_rows(p);
    }
    std::vector<RowRef> accused;
    auto samples = static_cast<std::int64_t>(options.sample_rows);
    const GemmView view = gemm_view(p);
    if (is_projectable(p) && all_rows_of(gather_work(p), view) <= options.project_work) {
        report.method = VerifyMethod::projection_and_rows;
        report.projected = view.batch * view.m * view.n;
        accused = suspicious_rows(tensors, reference, projection_width(p, options.project_work), options.seed);
    } else {
        report.method = VerifyMethod::sampled_rows;
        samples = std::max(samples, static_cast<std::int64_t>(options.full_work / row_work(p)));
        accused = unfinished_rows(tensors);
    }
    // The accused first, as checking stops at a failure.
    const std::vector<RowRef> others = sampled(p, samples, options.seed);
    accused.insert(accused.end(), others.begin(), others.end());
    return accused;
}

}  // namespace

double full_work(const Problem& p) { return all_rows_of(row_work(p), gemm_view(p)); }

VerifyReport verify_result(const Tensors& tensors, float alpha, float beta, const VerifyOptions& options) {
    VerifyReport report;
    if (const Status guards = tensors.check_guards(); !guards) report.guards = guards.error().message;
    const ReferenceOptions reference = {alpha, beta, options.summation};
    const std::vector<RowRef> rows = rows_to_check(tensors, reference, options, report);
    const bool to_the_end = report.method == VerifyMethod::every_element;
    Judge judge(tensors, report);
    visit_reference(tensors, rows, reference, [&](const ReferenceTile& tile) {
        judge.compare(tile);
        return to_the_end || report.failed == 0;
    });
    report.ok = report.failed == 0 && report.guards.empty();
    return report;
}

}  // namespace tilewise
