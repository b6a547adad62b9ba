// SPDX-License-Identifier: MIT
// How the work of a GPU kernel is cut into blocks, and the tensor maps its copies need.
#pragma once

#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "device/device.hpp"
#include "problem/facts.hpp"
#include "problem/problem.hpp"

namespace tilewise {

// Blocks of the second kernel, which adds up the sums in the workspace.
void add_reduction(LaunchGeometry& geometry, const GemmView& gemm);

LaunchGeometry block_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch);

}  // namespace tilewise
