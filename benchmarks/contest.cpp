// SPDX-License-Identifier: MIT
#include "benchmarks/contest.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "measure/element.hpp"

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

}  // namespace

Result<OurKernel> bind_ours(Dispatcher& dispatcher, const Problem& problem, const Operands& operands,
                            Strategy strategy) {
    SelectOptions options;
    options.strategy = strategy;
    auto plan = dispatcher.plan(problem, options);
    if (!plan) return plan.error();
    auto executable = dispatcher.executable(problem, **plan);
    if (!executable) return executable.error();
    auto run = BoundRun::make(*executable, dispatcher.device(), {&operands, 1}, 1.0f, 0.0f);
    if (!run) return run.error();
    return OurKernel{(*plan)->kernel->name, std::move(*run)};
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

std::vector<double> fastest_us(std::span<const TimedCall> calls, double seconds) {
    TimingOptions timing;
    timing.max_seconds = seconds;
    timing.warmup_seconds = seconds / 10;
    timing.clock = process_cpu_seconds;
    std::vector<double> us;
    for (const TimingResult& result : interleave(calls, timing)) us.push_back(result.fastest * 1e6);
    return us;
}

}  // namespace tilewise::bench
