// SPDX-License-Identifier: MIT
// From a problem to a plan: which kernel, where the choice came from, and why the others were not taken. A plan is
// a value that can be shown before anything is built or run, for archs this machine does not have as well.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "registry/registry.hpp"

namespace tilewise {

struct Plan {
    KernelPtr kernel;
    std::string source;  // what made the choice: "first-fit"
    std::string why;
};

struct Selection {
    std::optional<Plan> plan;  // unset when no kernel may run the problem
    Candidates candidates;     // in the order of preference
};

Selection select_kernel(const Problem& problem, const Registry& registry, const ArchSpec& arch);

// {plan, candidates, rejected}; without `explain` the list of rejections is empty.
Json selection_to_json(const Selection& selection, bool explain);

}  // namespace tilewise
