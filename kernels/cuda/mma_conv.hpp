// SPDX-License-Identifier: MIT
// Gathered convolution on mma.sync (sm_80 and later): what a generated stub includes.
#pragma once
#include "gather_conv.hpp"
#include "mma_core.hpp"

namespace tilewise::cuda {

template <class Config>
using MmaConv = GatherConv<Config, MmaCore<Config>>;

}  // namespace tilewise::cuda

#define TILEWISE_CUDA_MMA_CONV(Config)                             \
    TILEWISE_CUDA_KERNELS(Config, tilewise::cuda::MmaConv<Config>) \
    TILEWISE_CUDA_EXPAND(Config, tilewise::cuda::MmaConv<Config>)
