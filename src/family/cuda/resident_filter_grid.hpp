// SPDX-License-Identifier: MIT
// The launch of forward and backward data by shifted runs of positions
// (kernels/cuda/resident_filter_conv/resident_filter_conv.hpp): one block for each share of a group's runs, and maps of the pixels
// as lines of channels.
#pragma once

#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "family/launch_plan.hpp"
#include "problem/problem.hpp"

namespace tilewise {

std::optional<LaunchPlan> resident_filter_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch,
                                               int threads, Rejected* why);

}  // namespace tilewise
