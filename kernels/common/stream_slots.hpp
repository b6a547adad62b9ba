// SPDX-License-Identifier: MIT
// The workspace of a stream-K kernel: for each block a slot for the sums of a tile, then for each block its flags.
#pragma once
#include "args.hpp"

namespace tilewise {

inline constexpr int kFlagBytes = 16;  // of a block: a flag of 8 bytes for each of two groups of threads

}  // namespace tilewise
