// SPDX-License-Identifier: MIT
// How a launch is shared among threads. The partition belongs to the plan, not to the kernel: it cuts C into rectangles of
// whole micro-kernels, and split-K adds parts of the reduction.
#pragma once

#include <cstdint>
#include <utility>

#include "config/kernel_config.hpp"
#include "family/launch_plan.hpp"
#include "problem/facts.hpp"

namespace tilewise {

// Work too small for the cost of waking a thread stays on one.
inline constexpr double kSmallFlops = 4e6;

// The i-th of `count` even shares of `size`, cut at multiples of `unit`: its begin and end.
std::pair<std::int64_t, std::int64_t> share(std::int64_t size, std::int64_t unit, std::int64_t count, std::int64_t i);

CpuParts partition(const GemmView& gemm, const KernelConfig& config, int threads);

}  // namespace tilewise
