// SPDX-License-Identifier: MIT
// Gathered convolution on MFMA: what a generated stub includes. What is written out first (explicit_gemm) is written as on any GPU.
#pragma once
#include "conv_block.hpp"

namespace tilewise::hip::mfma_conv {

template <class Config>
using MfmaConv = ConvBlock<ConvConfig<Config>, MfmaCore<ConvConfig<Config>>>;

template <class Config>
using Expansion = GatherConv<Config, void>;  // multiplies nothing

}  // namespace tilewise::hip::mfma_conv

#define TILEWISE_HIP_MFMA_CONV(Config)                                       \
    TILEWISE_GPU_KERNELS(Config, tilewise::hip::mfma_conv::MfmaConv<Config>) \
    TILEWISE_GPU_EXPAND(Config, tilewise::hip::mfma_conv::Expansion<Config>)
