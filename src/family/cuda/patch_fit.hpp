// SPDX-License-Identifier: MIT
// Checks what a problem must have for a patch_conv or patch_box_conv kernel, whatever the tile of pixels.
#pragma once

#include "base/rejected.hpp"
#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "problem/problem.hpp"

namespace tilewise {

// Whether the kernel cannot take the problem; `out`, unless null, gets the numbers.
bool refuses_patch(const Problem& problem, const KernelConfig& config, const ArchSpec& arch, Rejected* out);

}  // namespace tilewise
