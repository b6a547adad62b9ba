// SPDX-License-Identifier: MIT
// How a caller wants a kernel chosen: the strategy, the kernels to choose from, and what measuring needs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/enum_names.hpp"
#include "config/rule_set.hpp"
#include "device/device.hpp"
#include "select/measure_candidates.hpp"
#include "select/select.hpp"

namespace tilewise {

// automatic: a tuned record, else a learned model, else the analytic one. model: a learned model or an error. measure: the model's best few
// are timed on scratch tensors, unless that was done before and is remembered.
enum class Strategy : std::uint8_t { automatic, rules, first_fit, measure, model };
template <>
struct EnumNames<Strategy> {
    static constexpr std::string_view kind = "strategy";
    static constexpr std::array<std::string_view, 5> names = {"auto", "rules", "first-fit", "measure", "model"};
};

struct SelectOptions {
    Strategy strategy = Strategy::automatic;
    RuleSet rule_set = RuleSet::standard;
    std::size_t measure_top = 0;    // kernels that are measured; 0: as many as suit the device
    MeasureProgress progress{};     // of measuring
    OperandArena* arena = nullptr;  // likewise, kept by who measures often
    bool again = false;             // measures although the winner is remembered
    // The stream that the plan is for. While the program captures it nothing may be measured: the ranked choice is taken.
    Stream stream = kDefaultStream;
    Ranking rank;  // a user's own, called without a lock
    // Kernels to choose from instead of the rule set's; must outlive the call.
    const Registry* registry = nullptr;
    bool as_given = false;  // takes no kernel that pads the problem, unless no other may run it

    // Whether the outcome depends on the problem, the strategy and the rule set alone.
    bool is_plain() const { return !rank && !registry && !as_given && !again; }
    bool measures() const { return strategy == Strategy::measure && !rank; }
};

}  // namespace tilewise
