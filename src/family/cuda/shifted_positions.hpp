// SPDX-License-Identifier: MIT
// An activation as kernels by shifted positions read it (resident_filter_grid.cpp, shifted_wgrad_grid.cpp): images are walked through as if
// they were larger, with zeros around, so that a tap is a fixed number of positions away.
#pragma once

#include <array>

#include "family/launch_plan.hpp"
#include "problem/problem.hpp"

namespace tilewise {

// For each of three dimensions: positions of the walk, pixels from one to the next, and pixels before the first of the tensor.
struct TapWalk {
    std::array<std::int64_t, 3> extent{}, step{}, before{};
};

// Channels of all groups of x or of y at every position; the box is the caller's.
TensorMapSpec walked_positions(const Problem& problem, bool is_x, const TapWalk& walk);

}  // namespace tilewise
