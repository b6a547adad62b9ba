// SPDX-License-Identifier: MIT
#include "select/tuned_ranker.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "problem/problem_text.hpp"
#include "run/executable.hpp"

namespace tilewise {
namespace {

Note changed_code(const std::string& kernel) {
    return {"tuning", ErrorCode::check_failed,
            fmt::format("the kernel that was measured to be the fastest, {}, is not preferred, since its code has "
                        "changed; tilewise tune measures again",
                        kernel)};
}

Ranked tuned_plan(const RankContext& context, Selection& selection) {
    const auto record = context.tuning->find(context.device->identity(), print_problem(context.problem));
    if (!record) return {};
    const auto found = find_candidate(selection, record->kernel);
    if (found == selection.candidates.end()) return {};
    if (!is_code_of(record->code_digest, context.problem, found->kernel->config, *context.device)) {
        return {std::nullopt, {changed_code(record->kernel)}};
    }
    Plan plan{found->kernel, PlanSource::tuned, fmt::format("measured before on this device: {:.2f} us", record->us)};
    std::rotate(selection.candidates.begin(), found, found + 1);
    return {std::move(plan)};
}

}  // namespace

Result<Ranked> rank_by_tuned_record(const RankContext& context, Selection& selection) {
    if (!context.tuning) return Ranked{};
    Ranked ranked = tuned_plan(context, selection);
    if (const auto refused = context.tuning->refused()) {
        ranked.notes.push_back({"tuning", refused->code, refused->message});
    }
    return ranked;
}

}  // namespace tilewise
