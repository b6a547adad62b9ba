// SPDX-License-Identifier: MIT
// How a kernel is chosen among the candidates of a problem: rankers are asked one after another, and the first that does not
// pass decides. A strategy is a list of rankers; the table in ranker.cpp has them all.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/note.hpp"
#include "base/result.hpp"
#include "build/builder.hpp"
#include "device/device.hpp"
#include "learn/model_store.hpp"
#include "problem/problem.hpp"
#include "select/record_store.hpp"
#include "select/select.hpp"
#include "select/select_options.hpp"
#include "select/tuning_database.hpp"

namespace tilewise {

// Everything that a ranker may ask about besides the candidates.
struct RankContext {
    const Problem& problem;
    const SelectOptions& options;
    int threads = 1;  // the predicted times are for so many
    // Null where the arch need not be here: then rankers that need a device are not asked.
    Device* device = nullptr;
    Builder* builder = nullptr;
    TuningDatabase* tuning = nullptr;  // null where nothing is remembered
    RecordStore* records = nullptr;    // null where nothing is recorded
    const ArchSpec* arch = nullptr;    // null where a choice need not say how it is launched
    ModelStore* models = nullptr;      // null where nothing was learned
};

struct Ranked {
    std::optional<Plan> plan{};  // unset: the ranker passes
    std::vector<Note> notes{};   // for the plan, also where a later ranker makes it
};

// Chooses among the candidates, of which there is at least one, and may put them in another order. An error ends the choice.
using Ranker = Result<Ranked> (*)(const RankContext& context, Selection& selection);

Result<Ranked> rank_by_model(const RankContext& context, Selection& selection);     // passes where nothing is predicted
Result<Ranked> rank_by_caller(const RankContext& context, Selection& selection);    // by SelectOptions::rank
Result<Ranked> rank_by_priority(const RankContext& context, Selection& selection);  // the first fit; never passes

// "of 12 kernels that may run the problem; 3 may not", or "of 15 kernels" where only the first was looked for.
std::string among(const Selection& selection);
// " on 2 threads", as many as the launch takes; nothing on a GPU. The plan that tells is kept for the launch.
std::string on_threads(const RankContext& context, Candidate& candidate);

// The rankers of the strategy, or the caller's own ranking where there is one.
std::span<const Ranker> rankers_of(const SelectOptions& options);

// The candidate of that name, or the end.
std::vector<Candidate>::iterator find_candidate(Selection& selection, std::string_view name);

// Asks the rankers that the context's options name and makes what they choose the selection's plan.
Status choose(const RankContext& context, Selection& selection);

}  // namespace tilewise
