// SPDX-License-Identifier: MIT
#include "select/select.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "config/fit.hpp"
#include "select/conv_cost_model.hpp"
#include "select/cost_model.hpp"
#include "select/gpu_cost_model.hpp"

namespace tilewise {
namespace {

// The analytic models know CPUs and NVIDIA GPUs.
bool has_model(const ArchSpec& arch) { return arch.backend == "cpu" || arch.backend == "cuda"; }

void predict(std::vector<Candidate>& candidates, const Problem& problem, const ArchSpec& arch, int threads) {
    const ProblemView view(problem);
    if (arch.backend == "cpu" && is_conv(problem.op)) {
        const ConvCostModel model(view, arch, threads);
        for (Candidate& one : candidates) one.predicted_us = model.predicted_us(one.kernel->config);
    } else if (arch.backend == "cpu") {
        for (Candidate& one : candidates) one.predicted_us = predicted_us(view, one.kernel->config, arch, threads);
    } else {
        for (Candidate& one : candidates) one.predicted_us = predicted_gpu_us(view, one.kernel->config, arch);
    }
}

void rank(std::vector<Candidate>& candidates, const Problem& problem, const ArchSpec& arch, int threads) {
    predict(candidates, problem, arch, threads);
    // Kernels of higher priority stay in front; equals keep the registry's order.
    std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
        if (a.kernel->priority != b.kernel->priority) return a.kernel->priority > b.kernel->priority;
        return *a.predicted_us < *b.predicted_us;
    });
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
