// SPDX-License-Identifier: MIT
// How a second kernel adds up the parts that blocks left of the same sums (gpu/reduce_many.hpp): the host counts its blocks by it.
#pragma once

namespace tilewise {

// Up to so many parts of sums, a thread of the second kernel reads all of its own; beyond, lanes share them (gpu/reduce_many.hpp).
inline constexpr int kFewParts = 4, kFewRun = 4;  // neighbouring sums of a thread then

}  // namespace tilewise
