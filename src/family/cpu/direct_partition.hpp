// SPDX-License-Identifier: MIT
// How a direct convolution (kernels/cpu/direct_conv/direct_conv.hpp) is shared among threads. Its parts are no rectangles of the GEMM
// view: m counts lines of the output tensor (images x all dimensions but the last), n its channels over all groups, cut
// between warp tiles. Backward weight has channels of dy and parts of the reduction only. Follows partition.hpp otherwise.
#pragma once

#include "config/kernel_config.hpp"
#include "family/launch_plan.hpp"
#include "problem/problem.hpp"

namespace tilewise {

CpuParts direct_partition(const Problem& problem, const KernelConfig& config, int threads);

}  // namespace tilewise
