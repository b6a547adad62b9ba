// SPDX-License-Identifier: MIT
// The launch of forward and backward data by shifted runs of positions (kernels/cuda/tap_conv.hpp): one block for each share of a
// group's runs, and maps of the pixels as lines of channels.
#pragma once

#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "device/device.hpp"
#include "problem/problem.hpp"

namespace tilewise {

LaunchGeometry tap_conv_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch);

}  // namespace tilewise
