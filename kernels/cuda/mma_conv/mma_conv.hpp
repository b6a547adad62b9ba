// SPDX-License-Identifier: MIT
// Gathered convolution on mma.sync (sm_80 and later): what a generated stub includes.
#pragma once
#include "../../gpu/gather_conv.hpp"
#include "../mma_core.hpp"

namespace tilewise::cuda::mma_conv {

template <class Config>
using MmaConv = GatherConv<Config, MmaCore<Config>>;

}  // namespace tilewise::cuda::mma_conv

#define TILEWISE_CUDA_MMA_CONV(Config)                                      \
    TILEWISE_GPU_KERNELS(Config, tilewise::cuda::mma_conv::MmaConv<Config>) \
    TILEWISE_GPU_EXPAND(Config, tilewise::cuda::mma_conv::MmaConv<Config>)
