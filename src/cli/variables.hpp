// SPDX-License-Identifier: MIT
// The variables of the environment that tilewise reads, for doctor to list.
#pragma once

#include <span>
#include <string_view>

namespace tilewise::cli {

struct Variable {
    const char* name;
    std::string_view help;
};
std::span<const Variable> variables();

}  // namespace tilewise::cli
