// SPDX-License-Identifier: MIT
#include "problem/problem_list.hpp"

#include <fmt/core.h>

#include "base/text.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {

Result<std::vector<Problem>> parse_problem_list(std::string_view text, const std::string& name) {
    std::vector<Problem> problems;
    int number = 0;
    for (const std::string_view line : split(text, '\n')) {
        ++number;
        const std::string_view body = trim(line.substr(0, line.find('#')));
        if (body.empty()) continue;
        auto problem = parse_problem(body);
        if (!problem) {
            return Error{problem.error().code, fmt::format("{}:{}: {}", name, number, problem.error().message)};
        }
        problems.push_back(std::move(*problem));
    }
    return problems;
}

}  // namespace tilewise
