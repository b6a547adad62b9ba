// SPDX-License-Identifier: MIT
// GEMM in plain fp32 arithmetic, no product rounded to fewer bits: what a generated stub includes.
// Not here: swap_ab.
#pragma once
#include "block_gemm.hpp"
#include "simt_core.hpp"

namespace tilewise::gpu {

template <class Config>
using SimtGemm = BlockGemm<Config, SimtCore<Config>>;

}  // namespace tilewise::gpu

#define TILEWISE_GPU_SIMT_GEMM(Config) TILEWISE_GPU_KERNELS(Config, tilewise::gpu::SimtGemm<Config>)
