// SPDX-License-Identifier: MIT
#include "select/select.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "config/family_id.hpp"
#include "family/family.hpp"
#include "family/may_run.hpp"
#include "family/problem_to_run.hpp"
#include "problem/empty_problem.hpp"
#include "select/padded_offers.hpp"
#include "select/ranker.hpp"

namespace tilewise {
namespace {

bool comes_first(const Candidate& candidate, const KernelPtr& kernel, std::optional<double> us) {
    if (candidate.kernel->priority != kernel->priority) return candidate.kernel->priority > kernel->priority;
    return !us || *candidate.predicted_us <= *us;
}

// Collects the kernels that may run a problem, each with its time, and keeps the plan of the one that is to be first.
class CandidateList {
public:
    CandidateList(const Problem& problem, const ArchSpec& arch, int threads) {
        if (has_families(arch.backend, problem.op)) work_.emplace(problem, arch, threads);
    }
    void add(const KernelPtr& kernel, const LaunchPlan* searched) {
        std::optional<double> us;
        if (work_) us = predicted_us(*work_, kernel->config, searched);
        if (candidates_.empty() || !comes_first(candidates_[first_], kernel, us)) {
            first_ = candidates_.size();
            launch_ = searched ? std::make_shared<const LaunchPlan>(*searched) : nullptr;
        }
        candidates_.push_back({kernel, us});
    }
    void finish(Selection& selection) {
        selection.candidates = std::move(candidates_);
        if (work_) sort_by_time(selection.candidates);
        if (!selection.candidates.empty()) selection.candidates.front().launch = std::move(launch_);
    }

private:
    std::optional<WorkProblem> work_;
    std::vector<Candidate> candidates_;
    std::size_t first_ = 0;
    std::shared_ptr<const LaunchPlan> launch_;
};

// Adds the fastest kernels for channels of whole 16-byte chunks that may not run the convolution as it is: copies with zeros often
// take less time than gathering channels that begin anywhere, tap by tap.
void offer_whole_channels(const Problem& problem, const Registry& registry, const ArchSpec& arch, int threads,
                          Selection& selection) {
    const auto whole = with_whole_channels(problem);
    if (!whole || !has_families(arch.backend, problem.op)) return;
    CandidateList list(*whole, arch, threads);
    registry.candidates(*whole, arch, Reasons::counted,
                        [&](const KernelPtr& kernel, const LaunchPlan* searched) { list.add(kernel, searched); });
    Selection ranked;
    list.finish(ranked);
    PaddedOffers offers(problem, *whole, arch, threads);
    static_cast<void>(std::ranges::all_of(ranked.candidates, [&](const Candidate& one) { return offers.take(one); }));
    const std::size_t added = offers.offer_all(selection);
    const auto is_offered = [&](const RejectedKernel& entry) {
        return std::any_of(selection.candidates.begin(), selection.candidates.end(),
                           [&](const Candidate& candidate) { return candidate.kernel == entry.kernel; });
    };
    std::erase_if(selection.rejected, is_offered);
    selection.rejected_count -= added;
}

// The kernel that came furthest through the rules says most about the problem.
const RejectedKernel& furthest(const Selection& selection) {
    const auto stage = [](const RejectedKernel& entry) {
        const auto rules = run_rules();
        std::size_t i = 0;
        while (i < rules.size() && rules[i].name != entry.why.rule) ++i;
        return i;
    };
    const RejectedKernel* best = &selection.rejected.front();
    for (const RejectedKernel& entry : selection.rejected) {
        if (stage(entry) > stage(*best)) best = &entry;
    }
    return *best;
}

}  // namespace

Result<Selection> select_by(const SelectOptions& options, ModelStore& models, const Problem& problem,
                            const Registry& registry, const ArchSpec& arch, int threads) {
    Selection selection = select_kernel(problem, registry, arch, threads);
    if (!selection.plan || options.strategy == Strategy::rules || is_empty(problem)) return selection;
    RankContext context{problem, options, threads};
    context.arch = &arch;
    context.models = &models;
    if (auto status = choose(context, selection); !status) return status.error();
    note_padding(selection);
    return selection;
}

Selection select_kernel(const Problem& problem, const Registry& registry, const ArchSpec& arch, int threads,
                        Reasons reasons) {
    if (is_empty(problem)) {
        Selection selection = select_kernel(stand_in(problem), registry, arch, threads, reasons);
        say_empty(problem, selection);
        return selection;
    }
    Selection selection;
    CandidateList accepted(problem, arch, threads);
    const auto accept = [&](const KernelPtr& kernel, const LaunchPlan* searched) { accepted.add(kernel, searched); };
    Candidates found = registry.candidates(problem, arch, reasons, accept);
    accepted.finish(selection);
    // Which kernels might run it padded depends on why they may not.
    const bool none = selection.candidates.empty();
    if (none && reasons == Reasons::counted) found = registry.candidates(problem, arch);
    selection.rejected = std::move(found.rejected);
    selection.rejected_count = found.rejected_count;
    if (none) {
        offer_padded(problem, arch, threads, selection);
    } else if (arch.is_gpu()) {
        offer_whole_channels(problem, registry, arch, threads, selection);
    }
    if (selection.candidates.empty()) return selection;
    // Ranked above already: the chain of `rules` takes the first and says why, and cannot fail.
    SelectOptions options;
    options.strategy = Strategy::rules;
    RankContext context{problem, options, threads};
    context.arch = &arch;
    static_cast<void>(choose(context, selection));
    note_padding(selection);
    return selection;
}

void say_empty(const Problem& problem, Selection& selection) {
    if (!selection.plan) return;
    selection.plan->launch = nullptr;
    selection.plan->why = has_empty_result(problem) ? "the result is empty: nothing is built or launched"
                                                    : "sums without terms: the kernel runs on a few zeros";
}

void offer_padded(const Problem& problem, const ArchSpec& arch, int threads, Selection& selection) {
    std::vector<RejectedKernel> rejected;
    for (RejectedKernel& entry : selection.rejected) {
        const KernelConfig& config = entry.kernel->config;
        const auto padded = may_run_otherwise(problem, entry.why.rule)
                                ? problem_to_run(problem, config, arch, &entry.why)
                                : std::nullopt;
        if (!padded) {
            rejected.push_back(std::move(entry));
            continue;
        }
        std::optional<double> us;
        if (has_families(arch.backend, problem.op)) {
            us = padded_us(*padded, config, arch, threads);
        }
        selection.candidates.push_back({std::move(entry.kernel), us, padded->note, false});
    }
    selection.rejected = std::move(rejected);
    selection.rejected_count = selection.rejected.size();
    if (has_families(arch.backend, problem.op)) sort_by_time(selection.candidates);
}

void note_padding(Selection& selection) {
    for (const Candidate& candidate : selection.candidates) {
        const bool is_chosen = candidate.kernel == selection.plan->kernel;
        if (is_chosen && candidate.padding) selection.plan->notes.push_back(*candidate.padding);
    }
}

std::string counts_by_rule(const Selection& selection) {
    std::map<std::string, int> counts;
    for (const auto& entry : selection.rejected) ++counts[entry.why.rule];
    std::string text;
    for (const auto& [rule, count] : counts) text += fmt::format("{}{} by {}", text.empty() ? "" : ", ", count, rule);
    return text;
}

std::string why_none(const Selection& selection) {
    if (selection.rejected.empty()) return "there is no kernel for this operation and these types";
    const auto& [kernel, why] = furthest(selection);
    return fmt::format("rejected {}; {} came furthest: have {}; need {}", counts_by_rule(selection), kernel->name,
                       why.have, why.need);
}

namespace {

Json error_to_json(const Estimate& estimate) { return estimate.error ? Json(*estimate.error) : Json(); }

Json candidate_to_json(const Candidate& candidate) {
    Json json = Json::object({{"name", candidate.kernel->name},
                              {"predicted_us", candidate.predicted_us ? Json(*candidate.predicted_us) : Json()},
                              {"padded", candidate.padding.has_value()}});
    if (!candidate.learned) return json;
    json.set("analytic_us", candidate.learned->analytic_us);
    json.set("correction", candidate.learned->estimate.correction);
    json.set("error", error_to_json(candidate.learned->estimate));
    return json;
}

Json learned_to_json(const LearnedChoice& choice) {
    Json::Array terms;
    for (const auto& [name, correction] : choice.effects) {
        terms.push_back(Json::object({{"name", name}, {"correction", correction}}));
    }
    return Json::object({{"name", choice.model},
                         {"weight", choice.weight},
                         {"confidence", choice.confidence},
                         {"predicted_us", choice.estimate.us},
                         {"analytic_us", choice.analytic_us},
                         {"correction", choice.estimate.correction},
                         {"error", error_to_json(choice.estimate)},
                         {"terms", Json(std::move(terms))}});
}

}  // namespace

Json selection_to_json(const Selection& selection) {
    Json plan;
    if (selection.plan) {
        const Kernel& kernel = *selection.plan->kernel;
        plan = Json::object({{"kernel", kernel.name},
                             {"id", kernel.id},
                             {"family", name_of(family_of(kernel.config))},
                             {"source", name_of(selection.plan->source)},
                             {"why", selection.plan->why},
                             {"notes", notes_to_json(selection.plan->notes)},
                             {"available", kernel.available}});
        if (selection.plan->learned) plan.set("model", learned_to_json(*selection.plan->learned));
    }
    Json::Array candidates, rejected;
    for (const Candidate& candidate : selection.candidates) candidates.push_back(candidate_to_json(candidate));
    for (const auto& [kernel, why] : selection.rejected) {
        rejected.push_back(
            Json::object({{"name", kernel->name}, {"rule", why.rule}, {"have", why.have}, {"need", why.need}}));
    }
    return Json::object({{"plan", std::move(plan)},
                         {"candidates", Json(std::move(candidates))},
                         {"rejected", Json(std::move(rejected))}});
}

}  // namespace tilewise
