// SPDX-License-Identifier: MIT
// Problems that choices are tested with: those of the problem sets, and random layers of common kinds.
#pragma once

#include <fmt/core.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "problem/problem.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {

// Every `step`-th problem of problems/NAME.txt.
inline std::vector<Problem> problems_of_set(const std::string& name, std::size_t step = 1) {
    std::vector<Problem> problems;
    std::ifstream file(fmt::format("{}/problems/{}.txt", TILEWISE_SOURCE_DIR, name));
    std::size_t count = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line.front() == '#' || count++ % step != 0) continue;
        if (auto problem = parse_problem(line.substr(0, line.find("  #")))) problems.push_back(std::move(*problem));
    }
    return problems;
}

// Products, and dense, grouped and depthwise layers in equal parts.
inline Problem random_layer(Random& random) {
    const auto dtype = random.pick(std::vector<std::string>{"bf16", "bf16", "fp16", "fp32"});
    const auto op = random.pick(kAllOps);
    if (op == Op::gemm) {
        const auto size = [&] { return random.chance(30) ? random.between(1, 64) : 8 * random.between(1, 1024); };
        const auto layout = random.pick(std::vector<std::string>{"rcr", "rcr", "rrr", "crr", "rcc"});
        return *parse_problem(
            fmt::format("gemm:m={},n={},k={},dtype={},layout={}", size(), size(), size(), dtype, layout));
    }
    const std::int64_t channels = random.chance(20) ? random.between(1, 100) : 8 * random.between(1, 64);
    const std::int64_t kind = random.between(0, 2), whole = channels % 8 == 0 ? channels / 8 : 1;
    const std::int64_t groups = kind == 0 ? 1 : kind == 1 ? whole : channels;
    const std::int64_t filter = 2 * random.between(0, 3) + 1, in = random.between(7, 112);
    return *parse_problem(fmt::format("{}:n={},g={},c={},k={},in={}x{},filter={}x{},stride={},pad={},dtype={}",
                                      name_of(op), random.between(1, 64), groups, channels, channels, in, in, filter,
                                      filter, random.between(1, 2), filter / 2, dtype));
}

}  // namespace tilewise
