// SPDX-License-Identifier: MIT
// An analytic prediction of a kernel's time on a problem, from the numbers of the arch file: arithmetic with the waste of
// partial tiles, packing, traffic to memory and to the caches, balance between threads. It ranks; it does not promise.
#pragma once

#include "config/arch_spec.hpp"
#include "config/fit.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

double predicted_us(const ProblemView& view, const KernelConfig& config, const ArchSpec& arch, int threads);

}  // namespace tilewise
