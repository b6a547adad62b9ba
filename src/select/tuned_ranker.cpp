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

Ranked tuned_plan(FoundRecord found, Selection& selection) {
    if (!found.held) return {std::nullopt, std::move(found.notes)};
    const auto& [record, candidate] = *found.held;
    Plan plan{candidate->kernel, PlanSource::tuned,
              fmt::format("measured before on this device: {:.2f} us", record.us)};
    std::rotate(selection.candidates.begin(), candidate, candidate + 1);
    return {std::move(plan), std::move(found.notes)};
}

}  // namespace

FoundRecord find_record(const RankContext& context, Selection& selection) {
    FoundRecord found;
    if (!context.tuning) return found;
    if (const auto refused = context.tuning->refused()) {
        found.notes.push_back({"tuning", refused->code, refused->message});
    }
    auto record = context.tuning->find(context.device->identity(), print_problem(context.problem));
    if (!record) return found;
    const auto candidate = find_candidate(selection, record->kernel);
    if (candidate == selection.candidates.end()) return found;
    if (is_code_of(record->code_digest, context.problem, candidate->kernel->config, *context.device)) {
        found.held = {std::move(*record), candidate};
    } else {
        found.notes.push_back(changed_code(record->kernel));
    }
    return found;
}

Result<Ranked> rank_by_tuned_record(const RankContext& context, Selection& selection) {
    return tuned_plan(find_record(context, selection), selection);
}

Result<Ranked> rank_by_kept_measurement(const RankContext& context, Selection& selection) {
    if (context.options.again) return Ranked{};
    FoundRecord found = find_record(context, selection);
    // A record that cannot be used is measured anew, and storing it says what is wrong with the file.
    if (!found.held || found.held->record.spread > kMostSpread) return Ranked{};
    return tuned_plan(std::move(found), selection);
}

}  // namespace tilewise
