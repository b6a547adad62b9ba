// SPDX-License-Identifier: MIT
#include "benchmarks/compare.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "measure/bound_run.hpp"
#include "measure/element.hpp"
#include "problem/problem_text.hpp"

namespace tilewise::bench {
namespace {

double process_cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::vector<double> output_of(const Tensors& tensors) {
    const MatrixView c = tensors.c();
    const GemmShape& g = tensors.problem().gemm;
    std::vector<double> values(static_cast<std::size_t>(g.m * g.n));
    for (std::int64_t row = 0; row < g.m; ++row) {
        decode(c.type, c.at(0, row, 0), c.col_stride, g.n, values.data() + row * g.n);
    }
    return values;
}

// How far two right results may lie apart, as a share of the largest value: a few roundings of the output's type and, in
// fp32, of sums in another order.
double allowed_share(DType out) {
    constexpr double kSumsShare = 1e-5;
    return out == DType::int32 ? 0 : 4 * unit_roundoff(out) + kSumsShare;
}

Status check_same(const std::vector<double>& ours, const std::vector<double>& theirs, DType out) {
    double largest = 0, difference = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
        if (!std::isfinite(theirs[i])) return Error{ErrorCode::check_failed, "a value is not finite"};
        largest = std::max(largest, std::abs(ours[i]));
        difference = std::max(difference, std::abs(ours[i] - theirs[i]));
    }
    if (difference <= allowed_share(out) * largest) return {};
    return Error{ErrorCode::check_failed,
                 fmt::format("differs by {:.3g}, where the largest value is {:.3g}", difference, largest)};
}

struct Ours {
    std::string kernel;
    BoundRun run;
};

Result<Ours> bind_ours(Dispatcher& dispatcher, const Tensors& tensors, Strategy strategy) {
    SelectOptions options;
    options.strategy = strategy;
    auto plan = dispatcher.plan(tensors.problem(), options);
    if (!plan) return plan.error();
    auto executable = dispatcher.executable(tensors.problem(), **plan);
    if (!executable) return executable.error();
    auto run = BoundRun::make(*executable, {&tensors, 1}, 1.0f, 0.0f);
    if (!run) return run.error();
    return Ours{(*plan)->kernel->name, std::move(*run)};
}

}  // namespace

Result<Comparison> compare(const Case& of, Dispatcher& dispatcher, const std::vector<std::unique_ptr<Peer>>& peers,
                           const CompareOptions& options) {
    auto tensors = Tensors::make(of.problem, 1);
    if (!tensors) return tensors.error();
    auto measured = bind_ours(dispatcher, *tensors, Strategy::measure);
    if (!measured) return measured.error();
    auto modelled = bind_ours(dispatcher, *tensors, Strategy::rules);
    if (!modelled) return modelled.error();
    if (auto status = measured->run.run(); !status) return status.error();
    const std::vector<double> expected = output_of(*tensors);

    std::vector<TimedCall> calls = {[&](int) { (void)measured->run.run(); }, [&](int) { (void)modelled->run.run(); }};
    std::vector<std::optional<std::size_t>> call_of_peer;
    for (const auto& peer : peers) {
        auto call = peer->bind(*tensors);
        call_of_peer.push_back(call ? std::optional(calls.size()) : std::nullopt);
        if (!call) continue;
        tensors->reset_output();
        (*call)(0);
        if (auto status = check_same(expected, output_of(*tensors), of.problem.dtype_out); !status) {
            return Error{ErrorCode::check_failed, fmt::format("{}: the result of {} {}", print_problem(of.problem),
                                                              peer->name(), status.error().message)};
        }
        calls.push_back(std::move(*call));
    }

    TimingOptions timing;
    timing.max_seconds = options.seconds;
    timing.warmup_seconds = options.seconds / 10;
    timing.clock = process_cpu_seconds;
    const std::vector<TimingResult> times = interleave(calls, timing);
    Comparison result{of, measured->kernel, times[0].fastest * 1e6, times[1].fastest * 1e6, {}};
    for (const auto& index : call_of_peer) {
        result.peers_us.push_back(index ? std::optional(times[*index].fastest * 1e6) : std::nullopt);
    }
    return result;
}

}  // namespace tilewise::bench
