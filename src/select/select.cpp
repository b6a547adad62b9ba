// SPDX-License-Identifier: MIT
#include "select/select.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "config/fit.hpp"
#include "select/cost_model.hpp"
#include "select/gpu_cost_model.hpp"

namespace tilewise {
namespace {

// The analytic models know CPUs and NVIDIA GPUs.
bool has_model(const ArchSpec& arch) { return arch.backend == "cpu" || arch.backend == "cuda"; }

void rank(std::vector<Candidate>& candidates, const Problem& problem, const ArchSpec& arch, int threads) {
    const ProblemView view(problem);
    for (Candidate& candidate : candidates) {
        const KernelConfig& config = candidate.kernel->config;
        candidate.predicted_us =
            arch.backend == "cpu" ? predicted_us(view, config, arch, threads) : predicted_gpu_us(view, config, arch);
    }
    // Kernels of higher priority stay in front; equals keep the registry's order.
    std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
        if (a.kernel->priority != b.kernel->priority) return a.kernel->priority > b.kernel->priority;
        return *a.predicted_us < *b.predicted_us;
    });
}

// The kernel that came furthest through the rules says most about the problem.
const RejectedKernel& furthest(const Selection& selection) {
    const auto stage = [](const RejectedKernel& entry) {
        const auto rules = fit_rules();
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

Selection select_kernel(const Problem& problem, const Registry& registry, const ArchSpec& arch, int threads) {
    Selection selection;
    Candidates candidates = registry.candidates(problem, arch);
    selection.rejected = std::move(candidates.rejected);
    for (KernelPtr& kernel : candidates.accepted) selection.candidates.push_back({std::move(kernel), std::nullopt});
    if (selection.candidates.empty()) return selection;
    if (has_model(arch)) rank(selection.candidates, problem, arch, threads);
    selection.plan = first_plan(selection, threads);
    return selection;
}

Plan first_plan(const Selection& selection, int threads) {
    const Candidate& first = selection.candidates.front();
    const std::string of = fmt::format("of {} kernels that may run the problem; {} may not",
                                       selection.candidates.size(), selection.rejected.size());
    if (!first.predicted_us) {
        return {first.kernel, "first-fit", fmt::format("the first, by priority and name, {}", of)};
    }
    return {first.kernel, "rules",
            fmt::format("the analytic model gives it {:.1f} us on {} thread{}, the least {}", *first.predicted_us,
                        threads, threads == 1 ? "" : "s", of)};
}

Status choose_by(const Ranking& rank, const Problem& problem, Selection& selection) {
    for (const std::string& name : rank(problem, selection.candidates)) {
        const auto found = std::find_if(selection.candidates.begin(), selection.candidates.end(),
                                        [&](const Candidate& candidate) { return candidate.kernel->name == name; });
        if (found == selection.candidates.end()) continue;
        selection.plan = Plan{found->kernel, "callback", "the first of the caller's ranking that may run the problem"};
        return {};
    }
    return unsupported_error("the caller's ranking names no kernel that may run the problem");
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

Json selection_to_json(const Selection& selection) {
    Json plan;
    if (selection.plan) {
        const Kernel& kernel = *selection.plan->kernel;
        plan = Json::object({{"kernel", kernel.name},
                             {"id", kernel.id},
                             {"source", selection.plan->source},
                             {"why", selection.plan->why},
                             {"notes", notes_to_json(selection.plan->notes)},
                             {"available", kernel.available}});
    }
    Json::Array candidates, rejected;
    for (const auto& [kernel, us] : selection.candidates) {
        candidates.push_back(Json::object({{"name", kernel->name}, {"predicted_us", us ? Json(*us) : Json()}}));
    }
    for (const auto& [kernel, why] : selection.rejected) {
        rejected.push_back(
            Json::object({{"name", kernel->name}, {"rule", why.rule}, {"have", why.have}, {"need", why.need}}));
    }
    return Json::object({{"plan", std::move(plan)},
                         {"candidates", Json(std::move(candidates))},
                         {"rejected", Json(std::move(rejected))}});
}

}  // namespace tilewise
