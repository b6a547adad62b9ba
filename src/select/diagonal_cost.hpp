// SPDX-License-Identifier: MIT
// What a depthwise kernel with diagonal matrices (kernels/cuda/depthwise_diagonal.hpp, diagonal_weight.hpp) takes, as gpu_cost_model
// asks: the rows of all frames at the pace of memory, products or the block's own steps, whichever is slowest.
#pragma once

#include "codegen/depthwise_spec.hpp"
#include "config/arch_spec.hpp"
#include "problem/problem.hpp"

namespace tilewise {

double predicted_diagonal_us(const Problem& p, const KernelConfig& c, const DepthwiseSpec& spec, const ArchSpec& arch);

}  // namespace tilewise
