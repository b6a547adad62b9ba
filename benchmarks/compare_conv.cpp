// SPDX-License-Identifier: MIT
#include <fmt/core.h>

#include <limits>

#include "benchmarks/compare.hpp"
#include "benchmarks/conv_peer.hpp"
#include "problem/problem_text.hpp"

namespace tilewise::bench {
namespace {

// All that is timed for one case. Every entry has given the same result.
class Contest {
public:
    explicit Contest(Tensors& tensors) : tensors_(tensors) {}

    // Runs the call once and holds its result against that of the first.
    Status add(const std::string& who, TimedCall call, const std::function<void()>& finish) {
        tensors_.reset_output();
        call(0);
        finish();
        const std::vector<double> found = output_of(tensors_);
        if (expected_.empty()) expected_ = found;
        if (auto status = check_same(expected_, found, tensors_.problem().dtype_out); !status) {
            return Error{
                ErrorCode::check_failed,
                fmt::format("{}: the result of {} {}", print_problem(tensors_.problem()), who, status.error().message)};
        }
        calls_.push_back(std::move(call));
        return {};
    }

    std::size_t size() const { return calls_.size(); }
    std::vector<double> times_us(const CompareOptions& options) const { return fastest_us(calls_, options); }

private:
    Tensors& tensors_;
    std::vector<double> expected_;
    std::vector<TimedCall> calls_;
};

// The ways of one peer, as a range of the contest's calls.
struct PeerCalls {
    std::size_t begin;
    std::vector<std::string> implementations;
};

Result<OurTimes> add_ours(Contest& contest, const Tensors& tensors, Dispatcher& dispatcher,
                          const CompareOptions& options) {
    // Who may pack weights ahead may leave it, too: direct kernels take them as they are.
    std::vector<Problem> problems = {tensors.problem()};
    if (tensors.problem().packed_b) {
        problems.push_back(tensors.problem());
        problems.back().packed_b = false;
    }
    auto ours = bind_ours(dispatcher, problems, operands_of(tensors), options);
    if (!ours) return ours.error();
    for (const OurKernel& one : {ours->fastest, ours->modelled}) {
        auto status = contest.add(
            one.kernel, [run = one.run](int) { (void)run.run(); }, [] {});
        if (!status) return status.error();
    }
    return OurTimes{ours->fastest.kernel, 0, 0};
}

}  // namespace

Result<Comparison> compare_conv(const Case& of, Dispatcher& dispatcher, const std::vector<OnednnEngine>& peers,
                                const CompareOptions& options) {
    auto tensors = Tensors::make(of.problem, 1);
    if (!tensors) return tensors.error();
    Contest contest(*tensors);
    Comparison result{of, std::nullopt, {}, ""};
    if (!options.peers_only) {
        auto ours = add_ours(contest, *tensors, dispatcher, options);
        if (!ours) return ours.error();
        result.ours = *ours;
    }
    std::vector<PeerCalls> peer_calls;
    for (const OnednnEngine& peer : peers) {
        PeerCalls ways{contest.size(), {}};
        for (BoundConv& way : bind_conv(peer, *tensors, of.packed)) {
            auto status =
                contest.add(fmt::format("{} ({})", peer.name(), way.implementation), std::move(way.call), way.finish);
            if (!status) return status.error();
            ways.implementations.push_back(std::move(way.implementation));
        }
        peer_calls.push_back(std::move(ways));
    }

    const std::vector<double> us = contest.times_us(options);
    if (result.ours) result.ours->us = us[0], result.ours->rules_us = us[1];
    double fastest = std::numeric_limits<double>::infinity();
    for (const auto& [begin, implementations] : peer_calls) {
        std::optional<double>& best = result.peers_us.emplace_back();
        for (std::size_t i = 0; i < implementations.size(); ++i) {
            const double one = us[begin + i];
            if (!best || one < *best) best = one;
            if (one < fastest) fastest = one, result.peer_code = implementations[i];
        }
    }
    return result;
}

}  // namespace tilewise::bench
