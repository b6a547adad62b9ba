// SPDX-License-Identifier: MIT
#include "select/measured_ranker.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "problem/problem_text.hpp"
#include "select/shortlist.hpp"
#include "select/tuned_ranker.hpp"
#include "select/tuning_decision.hpp"

namespace tilewise {

// A GPU has more kinds of kernels, and times one in a few hundredths of a second.
KernelList kernels_to_measure(const Selection& selection, const SelectOptions& options, const ArchSpec& arch) {
    constexpr std::size_t kOnCpu = 8, kOnGpu = 16;
    const std::size_t usual = arch.is_gpu() ? kOnGpu : kOnCpu;
    return shortlist(selection.candidates, options.measure_top > 0 ? options.measure_top : usual);
}

namespace {

Note failed_note(const MeasureOutcome& outcome, std::size_t tried) {
    const Failed& first = outcome.failed.front();
    return {"measure", ErrorCode::toolchain,
            fmt::format("{} of the best {} kernels could not be measured; the first, {}: {}", outcome.failed.size(),
                        tried, first.kernel->name, first.reason)};
}

// The winner is remembered, unless the record there is is better; then that one is chosen.
Plan keep_better(const RankContext& context, const std::optional<HeldRecord>& old, const MeasureOutcome& outcome,
                 std::vector<Note>& notes) {
    const Measured& winner = outcome.measured.front();
    Plan plan{winner.kernel, PlanSource::measured,
              fmt::format("fastest of {} measured: {:.2f} us", outcome.measured.size(), winner.settled_us())};
    const auto decision = decide_tuning(old ? std::optional(old->record) : std::nullopt, outcome.measured);
    if (!decision.replaces) {
        plan.kernel = old->candidate->kernel;
        plan.why = fmt::format("measured before on this device: {:.2f} us; {}", old->record.us, decision.why_not);
        return plan;
    }
    if (winner.spread > kMostSpread) {
        notes.push_back({"noise", ErrorCode::check_failed,
                         fmt::format("the times of the best {} kernels vary ({}); on a quiet machine they say more",
                                     outcome.measured.size(), spread_text(winner.spread))});
    }
    if (!context.tuning) return plan;
    // A result that cannot be kept is still a result.
    const auto kept =
        context.tuning->add({context.device->identity(), print_problem(context.problem), winner.kernel->name,
                             winner.code_digest, winner.settled_us(), winner.spread});
    if (!kept) notes.push_back({"tuning", kept.error().code, kept.error().message});
    return plan;
}

}  // namespace

Result<Ranked> rank_by_measuring(const RankContext& context, Selection& selection) {
    Device& device = *context.device;
    KernelList best = kernels_to_measure(selection, context.options, device.arch());
    const auto old = find_record(context, selection).held;
    if (old && std::find(best.begin(), best.end(), old->candidate->kernel) == best.end()) {
        best.push_back(old->candidate->kernel);
    }
    MeasureOptions measuring;
    measuring.arena = context.options.arena;
    measuring.progress = context.options.progress;
    measuring.records = context.records;
    auto outcome = measure_candidates(context.problem, best, device, *context.builder, measuring);
    if (!outcome) return outcome.error();
    if (outcome->measured.empty()) {
        return Error{ErrorCode::device, fmt::format("none of {} kernels could be measured; the first: {}", best.size(),
                                                    outcome->failed.empty() ? "" : outcome->failed.front().reason)};
    }
    // Two timings say more than the first alone.
    std::stable_sort(outcome->measured.begin(), outcome->measured.end(),
                     [](const Measured& a, const Measured& b) { return a.settled_us() < b.settled_us(); });
    Ranked ranked;
    if (!outcome->failed.empty()) ranked.notes.push_back(failed_note(*outcome, best.size()));
    ranked.plan = keep_better(context, old, *outcome, ranked.notes);
    ranked.notes.insert(ranked.notes.end(), outcome->notes.begin(), outcome->notes.end());
    return ranked;
}

}  // namespace tilewise
