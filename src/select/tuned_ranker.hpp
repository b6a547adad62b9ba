// SPDX-License-Identifier: MIT
// Chooses what was measured to be the fastest before, in this process or another.
#pragma once

#include <optional>
#include <vector>

#include "select/ranker.hpp"

namespace tilewise {

// A record of the problem on this device that still holds: its kernel is a candidate, and its code is what was measured.
struct HeldRecord {
    TuningRecord record;
    std::vector<Candidate>::iterator candidate;
};
struct FoundRecord {
    std::optional<HeldRecord> held{};
    std::vector<Note> notes{};  // why there is none, where that is news
};
FoundRecord find_record(const RankContext& context, Selection& selection);

Result<Ranked> rank_by_tuned_record(const RankContext& context, Selection& selection);  // passes where there is none
// The same for those who would measure otherwise: passes also where the times varied too much, or are wanted again.
Result<Ranked> rank_by_kept_measurement(const RankContext& context, Selection& selection);

}  // namespace tilewise
