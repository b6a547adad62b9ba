// SPDX-License-Identifier: MIT
// How forward of first layers is launched: as many blocks as the device holds share the tiles of pixels.
#pragma once

#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "family/launch_plan.hpp"
#include "problem/problem.hpp"

namespace tilewise {

// The launch of a config of the family first_layer_conv that fits the problem.
std::optional<LaunchPlan> first_layer_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch,
                                           int threads, Rejected* why);

}  // namespace tilewise
