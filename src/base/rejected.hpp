// SPDX-License-Identifier: MIT
// A refusal as a value: which rule, what was there, what it would take. Checks of problems, configs and pairs of
// the two all answer with this, so that every "no" in the product can be shown the same way.
#pragma once

#include <string>

namespace tilewise {

struct Rejected {
    std::string rule;
    std::string have;
    std::string need;

    bool operator==(const Rejected&) const = default;
};

}  // namespace tilewise
