// SPDX-License-Identifier: MIT
// A list of problems as text: one a line, # starts a comment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "problem/problem.hpp"

namespace tilewise {

// `name` is where the text stands; an error begins with it and the line: "models.txt:3: ...".
Result<std::vector<Problem>> parse_problem_list(std::string_view text, const std::string& name);

}  // namespace tilewise
