// SPDX-License-Identifier: MIT
// The variables of the environment that tilewise reads, for doctor to list.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace tilewise::cli {

struct Variable {
    const char* name;
    std::string_view help;
    Status (*check)() = nullptr;  // whether its value is one, where the build's settings do not say so
};
std::span<const Variable> variables();

// Those of this process that begin like ours and that nothing reads: misspelt ones.
std::vector<std::string> unknown_variables();

}  // namespace tilewise::cli
