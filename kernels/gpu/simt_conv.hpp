// SPDX-License-Identifier: MIT
// Gathered convolution in plain fp32 arithmetic, no product rounded to fewer bits: what a generated stub includes.
#pragma once
#include "gather_conv.hpp"
#include "simt_core.hpp"

namespace tilewise::gpu {

template <class Config>
using SimtConv = GatherConv<Config, SimtCore<Config>>;

}  // namespace tilewise::gpu

#define TILEWISE_GPU_SIMT_CONV(Config)                            \
    TILEWISE_GPU_KERNELS(Config, tilewise::gpu::SimtConv<Config>) \
    TILEWISE_GPU_EXPAND(Config, tilewise::gpu::SimtConv<Config>)
