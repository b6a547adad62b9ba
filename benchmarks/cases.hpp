// SPDX-License-Identifier: MIT
// The cases of the benchmarks: families of GEMM shapes, and the convolutions of a file; in each type, with B (of a convolution the
// weights) as it is and packed ahead.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "problem/problem.hpp"

namespace tilewise::bench {

struct Case {
    std::string family;
    Problem problem;
    // Backward weight packs its output. tilewise has no packed form of that, so its problem is then the plain one.
    bool packed = false;
    std::string origin;  // the kind of network a convolution comes from
};

std::string form_of(const Case& of);  // "plain" or "packed"
// The group of a case without its family: the type and the form; for a convolution the direction first.
std::vector<std::string> kind_of(const Case& of);
// What --only looks in: kind and family, of a convolution its dimensions and origin behind them.
std::string title_of(const Case& of);

// fp32, bf16 and int8 (in int32), first plain, then packed. `quick` leaves a few small shapes of each family.
std::vector<Case> make_cases(bool quick);

// Every shape of the file forward, backward data and backward weight, in fp32 and bf16, forward also in int8, plain and
// packed. Families are dense, grouped and depthwise. `quick` leaves the smallest shapes of each family.
Result<std::vector<Case>> make_conv_cases(const std::string& path, bool quick);

}  // namespace tilewise::bench
