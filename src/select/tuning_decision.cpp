// SPDX-License-Identifier: MIT
#include "select/tuning_decision.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace tilewise {

std::string spread_text(double spread) {
    return fmt::format("spread {:.0f} %, more than {:.0f} %", 100 * spread, 100 * kMostSpread);
}

TuningDecision decide_tuning(const std::optional<TuningRecord>& old, std::span<const Measured> measured) {
    if (!old) return {};
    const Measured& winner = measured.front();
    if (winner.spread > kMostSpread) {
        return {false, fmt::format("measuring again was too noisy ({})", spread_text(winner.spread))};
    }
    const auto again = std::find_if(measured.begin(), measured.end(),
                                    [&](const Measured& one) { return one.kernel->name == old->kernel; });
    if (again == measured.end()) return {false, "it could not be measured again"};
    if (again != measured.begin()) return {};  // beside the winner it was slower
    const bool better = winner.settled_us() < old->us || old->spread > kMostSpread;
    return {better, better ? "" : fmt::format("it won again, with {:.2f} us", winner.settled_us())};
}

}  // namespace tilewise
