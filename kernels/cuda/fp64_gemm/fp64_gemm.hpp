// SPDX-License-Identifier: MIT
// GEMM of fp32 operands in fp64 matrix units, no product rounded: what a generated stub includes.
#pragma once
#include "../../gpu/block_gemm.hpp"
#include "fp64_core.hpp"

namespace tilewise::cuda::fp64_gemm {

template <class Config>
using Fp64Gemm = BlockGemm<Config, Fp64Core<Config>>;

}  // namespace tilewise::cuda::fp64_gemm

#define TILEWISE_CUDA_FP64_GEMM(Config) TILEWISE_GPU_KERNELS(Config, tilewise::cuda::fp64_gemm::Fp64Gemm<Config>)
