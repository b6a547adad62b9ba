// SPDX-License-Identifier: MIT
// GEMM on mma.sync for fp16 and bf16 operands with fp32 sums (sm_80 and later): what a generated stub includes.
// Not here: swap_ab.
#pragma once
#include "../../gpu/block_gemm.hpp"
#include "../mma_core.hpp"

namespace tilewise::cuda::mma_gemm {

template <class Config>
using MmaGemm = BlockGemm<Config, MmaCore<Config>>;

}  // namespace tilewise::cuda::mma_gemm

#define TILEWISE_CUDA_MMA_GEMM(Config) TILEWISE_GPU_KERNELS(Config, tilewise::cuda::mma_gemm::MmaGemm<Config>)
