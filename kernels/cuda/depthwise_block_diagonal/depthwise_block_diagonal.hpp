// SPDX-License-Identifier: MIT
// Depthwise convolution on matrix units by block diagonal matrices of weights, all directions: what a generated stub includes.
#pragma once
#include "../../gpu/depthwise_reduce.hpp"
#include "block_diagonal_conv.hpp"
#include "block_diagonal_wgrad.hpp"

namespace tilewise::cuda::depthwise_block_diagonal {

template <class Config>
using BlockDiagonalKernel = typename ChooseType<Config::direction == Direction::backward_weight,
                                                BlockDiagonalWgrad<Config>, BlockDiagonalConv<Config>>::type;

}  // namespace tilewise::cuda::depthwise_block_diagonal

#define TILEWISE_CUDA_DEPTHWISE_BLOCK_DIAGONAL(Config)                                     \
    extern "C" __global__ void __launch_bounds__(Config::threads, Config::resident_blocks) \
        tilewise_kernel(const __grid_constant__ tilewise::KernelArgs args) {               \
        tilewise::cuda::depthwise_block_diagonal::BlockDiagonalKernel<Config>::run(args);  \
    }
