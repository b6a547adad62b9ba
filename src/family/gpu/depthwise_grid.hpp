// SPDX-License-Identifier: MIT
// How the work of a depthwise kernel is cut into blocks.
#pragma once

#include "config/kernel_config.hpp"
#include "family/launch_plan.hpp"
#include "problem/problem.hpp"

namespace tilewise {

std::int64_t depthwise_blocks(const Problem& problem, const KernelConfig& config, const ArchSpec& arch);

// The longest part of a kernel on matrix units: its blocks, rows of outputs, and the tiles that they begin.
struct DepthwiseShare {
    std::int64_t blocks = 0, rows = 0, walks = 0;
};
DepthwiseShare depthwise_share(const Problem& problem, const KernelConfig& config, const ArchSpec& arch);

// Sets the arguments of kernels on matrix units (kernels/common/depthwise_tiles_args.hpp); nothing for others.
void set_depthwise_geometry(GpuGrid& grid, const Problem& problem, const KernelConfig& config, const ArchSpec& arch);

// Blocks of the kernel that adds up the sums of the parts of backward weight.
void add_depthwise_reduction(GpuGrid& grid, const Problem& problem, int split_k, const ArchSpec& arch);

}  // namespace tilewise
