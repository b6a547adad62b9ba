// SPDX-License-Identifier: MIT
// The problem sets that are compiled into the command (problems/*.txt), and lists of problems that are one or a file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/embedded.hpp"
#include "base/result.hpp"

namespace tilewise::cli {

// A line of a set.
struct SetEntry {
    std::string problem;  // its text
    std::string family;   // the network or class it comes from
};

struct ProblemSet {
    std::string name;
    std::vector<SetEntry> entries;

    std::string hash() const;  // of the problems in their order; measurements name it
};

std::vector<std::string> problem_set_names();
Result<ProblemSet> find_problem_set(std::string_view name);

// The text of a set or, where no set has that name, of a file.
Result<std::string> read_problem_list(const std::string& file_or_set);

}  // namespace tilewise::cli
