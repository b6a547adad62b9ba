// SPDX-License-Identifier: MIT
#include "benchmarks/contest.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>

#include "measure/element.hpp"
#include "problem/problem_text.hpp"

namespace tilewise::bench {
namespace {

double process_cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// How far two right results may lie apart, as a share of the largest value: a few roundings of the output's type and, in
// fp32, of sums in another order.
double allowed_share(DType out) {
    constexpr double kSumsShare = 2e-5;
    return out == DType::int32 ? 0 : 4 * unit_roundoff(out) + kSumsShare;
}

Result<BoundRun> bind_one(Dispatcher& dispatcher, const Problem& problem, const Kernel& kernel,
                          const Operands& operands) {
    auto executable = Executable::prepare(problem, kernel, dispatcher.device(), dispatcher.builder());
    if (!executable) return executable.error();
    return BoundRun::make(std::make_shared<const Executable>(std::move(*executable)), dispatcher.device(),
                          {&operands, 1}, 1.0f, 0.0f);
}

}  // namespace

Result<OurKernels> bind_ours(Dispatcher& dispatcher, std::span<const Problem> problems, const Operands& operands,
                             const CompareOptions& compare) {
    SelectOptions options;
    options.strategy = Strategy::rules;
    std::vector<OurKernel> bound;
    std::size_t modelled = 0;
    double least_predicted = std::numeric_limits<double>::infinity();
    for (const Problem& problem : problems) {
        auto selection = dispatcher.select(problem, options);
        if (!selection) return selection.error();
        const std::size_t count = std::min(compare.top, selection->candidates.size());
        for (std::size_t i = 0; i < count; ++i) {
            const Candidate& candidate = selection->candidates[i];
            auto run = bind_one(dispatcher, problem, *candidate.kernel, operands);
            if (!run) return run.error();
            if (candidate.predicted_us.value_or(0) < least_predicted) {
                least_predicted = candidate.predicted_us.value_or(0);
                modelled = bound.size();
            }
            bound.push_back({candidate.kernel->name, std::move(*run)});
        }
    }
    if (bound.empty()) return unsupported_error(fmt::format("no kernel may run {}", print_problem(problems.front())));
    std::vector<TimedCall> calls;
    for (const OurKernel& one : bound) calls.push_back([&one](int) { (void)one.run.run(); });
    const std::vector<double> us = fastest_us(calls, compare);
    const auto fastest = std::min_element(us.begin(), us.end()) - us.begin();
    return OurKernels{bound[static_cast<std::size_t>(fastest)], bound[modelled]};
}

Operands operands_of(const Tensors& tensors) {
    Operands operands;
    operands.a = tensors.a().data, operands.b = tensors.b().data, operands.c = tensors.c().data;
    return operands;
}

std::vector<double> output_of(const Tensors& tensors) {
    const GuardedBuffer& c = *tensors.buffers()[2];
    const StoredRows& shape = c.shape();
    std::vector<double> values(static_cast<std::size_t>(shape.matrices * shape.rows * shape.row_length));
    double* to = values.data();
    for (std::int64_t matrix = 0; matrix < shape.matrices; ++matrix) {
        for (std::int64_t row = 0; row < shape.rows; ++row, to += shape.row_length) {
            decode(c.type(), c.row(matrix, row), 1, shape.row_length, to);
        }
    }
    return values;
}

Status check_same(const std::vector<double>& expected, const std::vector<double>& found, DType out) {
    double largest = 0, difference = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (!std::isfinite(found[i])) return Error{ErrorCode::check_failed, "a value is not finite"};
        largest = std::max(largest, std::abs(expected[i]));
        difference = std::max(difference, std::abs(expected[i] - found[i]));
    }
    if (difference <= allowed_share(out) * largest) return {};
    return Error{ErrorCode::check_failed,
                 fmt::format("differs by {:.3g}, where the largest value is {:.3g}", difference, largest)};
}

std::vector<double> fastest_us(std::span<const TimedCall> calls, const CompareOptions& options) {
    TimingOptions timing;
    timing.max_seconds = options.seconds;
    timing.warmup_seconds = options.seconds / 10;
    if (options.threads == 1) timing.clock = process_cpu_seconds;
    std::vector<double> us;
    for (const TimingResult& result : interleave(calls, timing)) us.push_back(result.fastest * 1e6);
    return us;
}

}  // namespace tilewise::bench
