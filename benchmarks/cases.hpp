// SPDX-License-Identifier: MIT
// What the benchmark runs: families of GEMM shapes, in each type, with B as it is and with B packed ahead.
#pragma once

#include <string>
#include <vector>

#include "problem/problem.hpp"

namespace tilewise::bench {

struct Case {
    std::string family;
    Problem problem;
};

// fp32, bf16 and int8 (in int32), first plain, then packed. `quick` leaves a few small shapes of each family.
std::vector<Case> make_cases(bool quick);

}  // namespace tilewise::bench
