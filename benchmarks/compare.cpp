// SPDX-License-Identifier: MIT
#include "benchmarks/compare.hpp"

#include <fmt/core.h>

#include "problem/problem_text.hpp"

namespace tilewise::bench {
Result<Comparison> compare(const Case& of, Dispatcher& dispatcher, const std::vector<std::unique_ptr<Peer>>& peers,
                           const CompareOptions& options) {
    auto tensors = Tensors::make(of.problem, 1);
    if (!tensors) return tensors.error();
    auto ours = bind_ours(dispatcher, {&of.problem, 1}, operands_of(*tensors), options);
    if (!ours) return ours.error();
    const auto& [fastest, modelled] = *ours;
    if (auto status = fastest.run.run(); !status) return status.error();
    const std::vector<double> expected = output_of(*tensors);

    std::vector<TimedCall> calls = {[&](int) { (void)fastest.run.run(); }, [&](int) { (void)modelled.run.run(); }};
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

    const std::vector<double> us = fastest_us(calls, options);
    Comparison result{of, OurTimes{fastest.kernel, us[0], us[1]}, {}, ""};
    for (const auto& index : call_of_peer) result.peers_us.push_back(index ? std::optional(us[*index]) : std::nullopt);
    return result;
}

}  // namespace tilewise::bench
