// SPDX-License-Identifier: MIT
// GEMM of fp32 operands in fp64 matrix units, no product rounded: what a generated stub includes.
#pragma once
#include "block_gemm.hpp"
#include "double_core.hpp"

namespace tilewise::cuda {

template <class Config>
using DoubleGemm = BlockGemm<Config, DoubleCore<Config>>;

}  // namespace tilewise::cuda

#define TILEWISE_CUDA_DOUBLE_GEMM(Config) TILEWISE_CUDA_KERNELS(Config, tilewise::cuda::DoubleGemm<Config>)
