// SPDX-License-Identifier: MIT
// Whether a measurement takes the place of the record there is. What was measured at other times says little about one another, so the
// recorded kernel takes part when a problem is measured again, and is replaced only by one that was faster beside it.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "select/measure_candidates.hpp"
#include "select/tuning_database.hpp"

namespace tilewise {

struct TuningDecision {
    bool replaces = true;
    std::string why_not;  // for people
};
// `old` is the record that still holds; `measured` is not empty, fastest first.
TuningDecision decide_tuning(const std::optional<TuningRecord>& old, std::span<const Measured> measured);

// "spread 14 %, more than 10 %"
std::string spread_text(double spread);

}  // namespace tilewise
