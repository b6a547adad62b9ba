// SPDX-License-Identifier: MIT
// What a depthwise kernel on matrix units takes (kernels/cuda/depthwise_block_diagonal/block_diagonal_conv.hpp, depthwise_band.hpp
// and their backward weight), as depthwise_cost asks: a start, then memory, or the blocks' steps from line to line, whichever is
// slower.
#pragma once

#include "config/arch_spec.hpp"
#include "family/cuda/depthwise_spec.hpp"
#include "problem/problem.hpp"

namespace tilewise {

double predicted_depthwise_matrix_us(const Problem& p, const KernelConfig& c, const DepthwiseSpec& spec,
                                     const ArchSpec& arch);

}  // namespace tilewise
