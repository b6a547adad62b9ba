// SPDX-License-Identifier: MIT
// Whether a kernel may run a problem: the rules of config/fit.hpp, then what only a plan can say.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/rejected.hpp"
#include "config/fit.hpp"
#include "family/launch_plan.hpp"

namespace tilewise {

struct NamedRule {
    std::string_view name;
    std::string_view reason;
};
std::span<const NamedRule> run_rules();  // in the order they are checked

// `why`, unless null, gets the first broken rule. Where the family searches for its plan, `searched`, unless null, gets what was
// found: with its workspace, the plan of a launch.
bool may_run(const ProblemView& view, const KernelConfig& config, const ArchSpec& arch, Rejected* why = nullptr,
             std::optional<LaunchPlan>* searched = nullptr);

// The same for a config that keeps the rules it shares with others (config/fit.hpp): only its own are asked.
bool may_run_itself(const ProblemView& view, const KernelConfig& config, const ArchSpec& arch,
                    std::optional<LaunchPlan>* searched);

// As the config's family plans it; none where the config may not run the problem, or has no family. A CPU's work is for so many
// threads.
std::optional<LaunchPlan> launch_plan(const Problem& problem, const KernelConfig& config, const ArchSpec& arch,
                                      int threads, Rejected* why = nullptr);

}  // namespace tilewise
