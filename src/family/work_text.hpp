// SPDX-License-Identifier: MIT
// A work tree for people and for programs, with the names and values of the prices in it.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/work.hpp"
#include "config/arch_spec.hpp"

namespace tilewise {

// A part of the work that has a name: its value, and how that follows from other parts, counts and prices.
struct WorkLine {
    std::string name;
    double value = 0;
    std::string formula;
    int depth = 0;  // 0 for the whole, which is in microseconds
};
// The whole first, then its parts; those that add nothing are left out. Of an arch whose prices the work has.
std::vector<WorkLine> work_lines(const Work& work, const ArchSpec& arch);

// {form, name?, value, of: [...]}; of counts {count, name?}, of prices {price, value}.
Json work_to_json(const Work& work, const ArchSpec& arch);

}  // namespace tilewise
