// SPDX-License-Identifier: MIT
// Depthwise convolution on matrix units by bands of a Toeplitz matrix, all directions: what a generated stub includes.
#pragma once
#include "../../gpu/depthwise_reduce.hpp"
#include "toeplitz_conv.hpp"
#include "toeplitz_wgrad.hpp"

namespace tilewise::cuda::depthwise_toeplitz {

template <class Config>
using ToeplitzKernel = typename ChooseType<Config::direction == Direction::backward_weight, ToeplitzWgrad<Config>,
                                           ToeplitzConv<Config>>::type;

}  // namespace tilewise::cuda::depthwise_toeplitz

#define TILEWISE_CUDA_DEPTHWISE_TOEPLITZ(Config)                                           \
    extern "C" __global__ void __launch_bounds__(Config::threads, Config::resident_blocks) \
        tilewise_kernel(const __grid_constant__ tilewise::KernelArgs args) {               \
        tilewise::cuda::depthwise_toeplitz::ToeplitzKernel<Config>::run(args);             \
    }
