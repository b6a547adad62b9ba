// SPDX-License-Identifier: MIT
// How the work of a GPU convolution kernel is cut into blocks: each family its own way.
#pragma once

#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "device/device.hpp"
#include "problem/problem.hpp"

namespace tilewise {

LaunchGeometry conv_grid(const Problem& problem, const KernelConfig& config, const ArchSpec& arch);

}  // namespace tilewise
