// SPDX-License-Identifier: MIT
// Backward data of layers with few input channels on mma.sync (sm_80 and later), in two kernels.
//
// Product     The first one multiplies every pixel of dy by the whole filter: P = dy w, where dy is a matrix of pixels x k and w one of
//             k x (taps x c), as they lie; nothing is gathered. Tiles, loops and parts of k are those of GEMM (block_gemm.hpp), and so are
//             m, n and k of the arguments. The sums go to the workspace: [part of k][pixel of dy][tap][channel] in fp32.
// Sums        The second one adds up what the taps that meet a pixel of dx have left, and finishes it (reduce_columns.hpp).
// Bytes       dy is read once for every tile of columns, which is once where taps x c fit a tile; w once for every tile of rows, from
//             the cache. P is written and read once: 4 x split_k x pixels of dy x taps x c bytes, most of which the cache keeps.
// The arithmetic is 2 x pixels of dy x taps x c x k: no tap of a strided layer is wasted, but those that lead into the padding are
// computed, too, and left out.
#pragma once
#include "../../gpu/block_gemm.hpp"
#include "../../gpu/reduce_columns.hpp"
#include "../mma_core.hpp"

namespace tilewise::cuda::col2im_conv {

template <class Config>
using ColumnProduct = BlockGemm<Config, MmaCore<Config>>;

}  // namespace tilewise::cuda::col2im_conv

#define TILEWISE_CUDA_COL2IM_CONV(Config) \
    TILEWISE_GPU_KERNELS(Config, tilewise::cuda::col2im_conv::ColumnProduct<Config>)
