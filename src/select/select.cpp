// SPDX-License-Identifier: MIT
#include "select/select.hpp"

#include <fmt/format.h>

namespace tilewise {

Selection select_kernel(const Problem& problem, const Registry& registry, const ArchSpec& arch) {
    Selection selection;
    selection.candidates = registry.candidates(problem, arch);
    const KernelList& accepted = selection.candidates.accepted;
    if (!accepted.empty()) {
        selection.plan =
            Plan{accepted.front(), "first-fit",
                 fmt::format("first of {} kernels that may run the problem, by priority and name; {} may not",
                             accepted.size(), selection.candidates.rejected.size())};
    }
    return selection;
}

Json selection_to_json(const Selection& selection, bool explain) {
    Json plan;
    if (selection.plan) {
        const Kernel& kernel = *selection.plan->kernel;
        plan = Json::object({{"kernel", kernel.name},
                             {"id", kernel.id},
                             {"source", selection.plan->source},
                             {"why", selection.plan->why},
                             {"available", kernel.available}});
    }
    Json::Array candidates, rejected;
    for (const KernelPtr& kernel : selection.candidates.accepted) {
        candidates.push_back(Json::object({{"name", kernel->name}, {"predicted_us", Json()}}));
    }
    if (explain) {
        for (const auto& [kernel, why] : selection.candidates.rejected) {
            rejected.push_back(
                Json::object({{"name", kernel->name}, {"rule", why.rule}, {"have", why.have}, {"need", why.need}}));
        }
    }
    return Json::object({{"plan", std::move(plan)},
                         {"candidates", Json(std::move(candidates))},
                         {"rejected", Json(std::move(rejected))}});
}

}  // namespace tilewise
