// SPDX-License-Identifier: MIT
// GEMM on MFMA: what a generated stub includes. Not here: swap_ab.
#pragma once
#include "../../gpu/block_gemm.hpp"
#include "../deep_mainloop.hpp"
#include "../mfma_core.hpp"

namespace tilewise::hip::mfma_gemm {

template <class Config>
using MfmaGemm = BlockGemm<LoopConfig<Config>, MfmaCore<LoopConfig<Config>>>;

}  // namespace tilewise::hip::mfma_gemm

#define TILEWISE_HIP_MFMA_GEMM(Config) TILEWISE_GPU_KERNELS(Config, tilewise::hip::mfma_gemm::MfmaGemm<Config>)
