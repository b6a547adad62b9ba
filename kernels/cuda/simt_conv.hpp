// SPDX-License-Identifier: MIT
// Gathered convolution in plain fp32 arithmetic, no product rounded to fewer bits: what a generated stub includes.
#pragma once
#include "gather_conv.hpp"
#include "simt_core.hpp"

namespace tilewise::cuda {

template <class Config>
using SimtConv = GatherConv<Config, SimtCore<Config>>;

}  // namespace tilewise::cuda

#define TILEWISE_CUDA_SIMT_CONV(Config)                             \
    TILEWISE_CUDA_KERNELS(Config, tilewise::cuda::SimtConv<Config>) \
    TILEWISE_CUDA_EXPAND(Config, tilewise::cuda::SimtConv<Config>)
