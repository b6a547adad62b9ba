// SPDX-License-Identifier: MIT
// The bytes that a convolution by patches, forward or backward data, moves to and from memory. Its blocks walk slice by slice: a
// slice is some groups, or columns of one, and its channels are a piece of every pixel. A line of memory that several slices have
// a piece of is fetched again by each that comes to it after the cache has dropped it.
#pragma once

#include "config/arch_spec.hpp"
#include "family/cuda/patch_tile.hpp"

namespace tilewise {

// The bytes of a plan for the problem and config; not less than every tensor once.
double patch_traffic_bytes(const Problem& problem, const KernelConfig& config, const PatchConvPlan& choice,
                           const ArchSpec& arch);

}  // namespace tilewise
