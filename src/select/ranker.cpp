// SPDX-License-Identifier: MIT
#include "select/ranker.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "family/launch_plan.hpp"
#include "family/may_run.hpp"
#include "select/learned_ranker.hpp"
#include "select/measured_ranker.hpp"
#include "select/tuned_ranker.hpp"

namespace tilewise {
namespace {

constexpr Ranker kAutomatic[] = {rank_by_tuned_record, rank_by_learned_model, rank_by_model, rank_by_priority};
constexpr Ranker kLearned[] = {rank_by_learned_model, fail_without_learned_model};
constexpr Ranker kRules[] = {rank_by_model, rank_by_priority};
constexpr Ranker kFirstFit[] = {rank_by_priority};
constexpr Ranker kMeasure[] = {rank_by_kept_measurement, order_by_learned_model, rank_by_measuring};
constexpr Ranker kCaller[] = {rank_by_caller};

struct StrategyRow {
    Strategy strategy;
    std::span<const Ranker> rankers;
};
constexpr StrategyRow kStrategies[] = {
    {Strategy::automatic, kAutomatic}, {Strategy::rules, kRules},   {Strategy::first_fit, kFirstFit},
    {Strategy::measure, kMeasure},     {Strategy::model, kLearned},
};
static_assert(std::size(kStrategies) == EnumNames<Strategy>::names.size());

}  // namespace

std::string on_threads(const RankContext& context, Candidate& candidate) {
    if (!context.arch || context.arch->is_gpu()) return "";
    if (!candidate.launch && candidate.is_as_given) {
        auto plan = launch_plan(context.problem, candidate.kernel->config, *context.arch, context.threads);
        if (plan) candidate.launch = std::make_shared<const LaunchPlan>(std::move(*plan));
    }
    const CpuParts* parts = candidate.launch ? candidate.launch->cpu() : nullptr;
    const int threads = parts ? parts->threads : context.threads;
    return fmt::format(" on {} thread{}", threads, threads == 1 ? "" : "s");
}

std::string among(const Selection& selection) {
    if (selection.looked_through > 0) return fmt::format("of {} kernels", selection.looked_through);
    const auto padded = std::count_if(selection.candidates.begin(), selection.candidates.end(),
                                      [](const Candidate& candidate) { return candidate.padding.has_value(); });
    const bool all = static_cast<std::size_t>(padded) == selection.candidates.size();
    return fmt::format("of {} kernels that may run the problem{}; {} may not", selection.candidates.size(),
                       all          ? " padded, since none may as it is"
                       : padded > 0 ? fmt::format(", {} of them padded", padded)
                                    : "",
                       selection.rejected_count);
}

Result<Ranked> rank_by_model(const RankContext& context, Selection& selection) {
    Candidate& first = selection.candidates.front();
    if (!first.predicted_us) return Ranked{};
    return Ranked{Plan{first.kernel, PlanSource::rules,
                       fmt::format("the analytic model gives it {:.1f} us{}, the least {}", *first.predicted_us,
                                   on_threads(context, first), among(selection))}};
}

Result<Ranked> rank_by_priority(const RankContext&, Selection& selection) {
    const auto comes_first = [](const Candidate& a, const Candidate& b) {
        if (a.kernel->priority != b.kernel->priority) return a.kernel->priority > b.kernel->priority;
        return a.kernel->name < b.kernel->name;
    };
    const Candidate& first = *std::min_element(selection.candidates.begin(), selection.candidates.end(), comes_first);
    // Where a model has an opinion, the caller did not want it and knows why.
    return Ranked{Plan{first.kernel, PlanSource::first_fit,
                       first.predicted_us ? "the first by priority and name"
                                          : fmt::format("the first, by priority and name, {}", among(selection))}};
}

Result<Ranked> rank_by_caller(const RankContext& context, Selection& selection) {
    for (const std::string& name : context.options.rank(context.problem, selection.candidates)) {
        const auto found = find_candidate(selection, name);
        if (found == selection.candidates.end()) continue;
        return Ranked{
            Plan{found->kernel, PlanSource::callback, "the first of the caller's ranking that may run the problem"}};
    }
    return unsupported_error("the caller's ranking names no kernel that may run the problem");
}

std::vector<Candidate>::iterator find_candidate(Selection& selection, std::string_view name) {
    return std::find_if(selection.candidates.begin(), selection.candidates.end(),
                        [&](const Candidate& candidate) { return candidate.kernel->name == name; });
}

std::span<const Ranker> rankers_of(const SelectOptions& options) {
    if (options.rank) return kCaller;
    return std::find_if(std::begin(kStrategies), std::end(kStrategies),
                        [&](const StrategyRow& row) { return row.strategy == options.strategy; })
        ->rankers;
}

Status choose(const RankContext& context, Selection& selection) {
    std::vector<Note> notes;
    for (const Ranker ranker : rankers_of(context.options)) {
        auto ranked = ranker(context, selection);
        if (!ranked) return ranked.error();
        std::move(ranked->notes.begin(), ranked->notes.end(), std::back_inserter(notes));
        if (!ranked->plan) continue;
        selection.plan = std::move(ranked->plan);
        for (const Candidate& candidate : selection.candidates) {
            if (candidate.kernel == selection.plan->kernel) selection.plan->launch = candidate.launch;
        }
        selection.plan->notes = std::move(notes);
        return {};
    }
    return unsupported_error("no ranker of the strategy chose a kernel");
}

}  // namespace tilewise
