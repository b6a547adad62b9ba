// SPDX-License-Identifier: MIT
// Sizes are counted in 64 bits; what a rule has bounded goes on in 32. A build with sanitizers stops where the rule was missing.
#pragma once
#include "args.hpp"

namespace tilewise {

constexpr int to_int(Index value) {
#ifdef TILEWISE_SANITIZED
    if (value != int(value)) __builtin_trap();
#endif
    return int(value);
}

}  // namespace tilewise
