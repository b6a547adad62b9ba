// SPDX-License-Identifier: MIT
// GEMM in plain fp32 arithmetic, no product rounded to fewer bits: what a generated stub includes.
// Not here: swap_ab.
#pragma once
#include "block_gemm.hpp"
#include "simt_core.hpp"

namespace tilewise::cuda {

template <class Config>
using SimtGemm = BlockGemm<Config, SimtCore<Config>>;

}  // namespace tilewise::cuda

#define TILEWISE_CUDA_SIMT_GEMM(Config) TILEWISE_CUDA_KERNELS(Config, tilewise::cuda::SimtGemm<Config>)
