// SPDX-License-Identifier: MIT
// The scratch memory that a kernel needs for a problem: partial sums, slots of stream-K, gathered and packed operands.
#pragma once

#include <cstdint>

#include "config/fit.hpp"

namespace tilewise {

// Whether sums go to the workspace first and are finished in a second pass.
bool sums_in_workspace(const KernelConfig& config);

// Scratch memory the kernel needs for the problem. `planned_parts` are the parts of the reduction, where its family plans them.
std::int64_t workspace_bytes(const ProblemView& view, const KernelConfig& config, const ArchSpec& arch,
                             int planned_parts = 0);

}  // namespace tilewise
