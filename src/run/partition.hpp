// SPDX-License-Identifier: MIT
// How a launch is shared among threads. The partition belongs to the plan, not to the kernel: it cuts C into rectangles of
// whole micro-kernels, and split-K adds parts of the reduction.
#pragma once

#include "config/kernel_config.hpp"
#include "device/device.hpp"
#include "problem/facts.hpp"

namespace tilewise {

LaunchGeometry partition(const GemmView& gemm, const KernelConfig& config, int threads);

}  // namespace tilewise
