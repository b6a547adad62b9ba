// SPDX-License-Identifier: MIT
// The rule between a problem and a halo kernel (gather=halo) of forward or backward data; config/fit.cpp has the others.
#pragma once

#include "config/fit.hpp"

namespace tilewise {

// Whether a kernel of this kind cannot take the problem; always false for other kernels.
bool beyond_halo(const ProblemView& view, const KernelConfig& config, const ArchSpec& arch, Rejected* out);

}  // namespace tilewise
