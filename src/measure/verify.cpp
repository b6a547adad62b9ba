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

namespace tilewise {
namespace {

// What finishing and comparing an element costs, in multiply-adds.
constexpr double kElementWork = 64;

double row_work(const Problem& p) {
    return static_cast<double>(p.gemm.n) * (static_cast<double>(p.gemm.k) + kElementWork);
}

bool is_poison(const MatrixView& c, std::int64_t batch, std::int64_t row, std::int64_t col) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, c.at(batch, row, col), static_cast<std::size_t>(bytes_of(c.type)));
    return bits == poison_bits(c.type);
}

// Compares tiles of the reference with C and keeps the account.
class Judge {
public:
    Judge(const GemmTensors& tensors, VerifyReport& report) : c_(tensors.c()), report_(report) {}

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
    const std::int64_t all = p.gemm.batch * p.gemm.m;
    count = std::clamp<std::int64_t>(count, 1, all);
    std::vector<RowRef> rows = {{0, 0}};
    for (std::int64_t i = 0; i < count; ++i) {
        const double at = (static_cast<double>(i) + random_unit(seed, static_cast<std::uint64_t>(i))) /
                          static_cast<double>(count) * static_cast<double>(all);
        const std::int64_t row = std::min(static_cast<std::int64_t>(at), all - 1);
        rows.push_back({row / p.gemm.m, row % p.gemm.m});
    }
    rows.push_back({p.gemm.batch - 1, p.gemm.m - 1});
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    return rows;
}

std::vector<RowRef> rows_to_check(const GemmTensors& tensors, const ReferenceOptions& reference,
                                  const VerifyOptions& options, VerifyReport& report) {
    const Problem& p = tensors.problem();
    if (full_work(p) <= options.full_work) {
        report.method = VerifyMethod::every_element;
        return all_rows(p);
    }
    std::vector<RowRef> accused;
    auto samples = static_cast<std::int64_t>(options.sample_rows);
    if (is_projectable(p)) {
        report.method = VerifyMethod::projection_and_rows;
        report.projected = p.gemm.batch * p.gemm.m * p.gemm.n;
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

double full_work(const Problem& p) { return row_work(p) * static_cast<double>(p.gemm.batch * p.gemm.m); }

VerifyReport verify_gemm(const GemmTensors& tensors, float alpha, float beta, const VerifyOptions& options) {
    VerifyReport report;
    if (const Status guards = tensors.check_guards(); !guards) report.guards = guards.error().message;
    const ReferenceOptions reference = {alpha, beta, options.split_k};
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
