// SPDX-License-Identifier: MIT
// The time that backward weight by patches in shared memory (kernels/cuda/patch_wgrad/patch_wgrad.hpp) is expected to take.
#pragma once

#include "config/arch_spec.hpp"
#include "config/fit.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

double halo_weight_us(const ProblemView& view, const KernelConfig& c, const ArchSpec& arch);

}  // namespace tilewise
