// SPDX-License-Identifier: MIT
// A hash of a problem, for tables in memory: quick, and equal for equal problems. It means nothing outside the process.
#pragma once

#include <cstddef>

#include "problem/problem.hpp"

namespace tilewise {

struct ProblemHash {
    std::size_t operator()(const Problem& problem) const;
};

}  // namespace tilewise
