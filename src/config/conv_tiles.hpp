// SPDX-License-Identifier: MIT
// The tiles that GPU convolutions of three families are cut into, and the steps of each: those that gather their operands
// (kernels/gpu/gather_conv.hpp), those whose operands the copy engine fetches (kernels/cuda/im2col_conv/im2col_conv.hpp), and those
// that leave columns (kernels/cuda/col2im_conv/col2im_conv.hpp). Fit asks whether they can be counted, grids and predicted times how
// many there are.
#pragma once

#include <cstdint>

#include "config/kernel_config.hpp"
#include "problem/facts.hpp"
#include "problem/problem.hpp"

namespace tilewise {

// Whether a gathering kernel reads elements that may begin anywhere as chunks of 16 bytes that it puts together.
bool reads_chunks_anywhere(const KernelConfig& config);
// Whether a gathering kernel counts the channels of every tap in whole chunks of shared memory, since they may begin anywhere
// (kernels/common/channel_chunks.hpp).
bool counts_whole_chunks(const KernelConfig& config);
// `gemm` is the gemm_view of the problem, which is not worked out for every kernel again.

// The product that a gathering kernel computes.
GemmView gathered_view(const Problem& problem, const GemmView& gemm, const KernelConfig& config);
// The same as it is worked on: residue classes of strided backward data meet every stride-th tap only.
GemmView worked_view(const Problem& problem, const GemmView& gemm, const KernelConfig& config);

// Tiles of that product; a tile of backward data belongs to one residue class.
std::int64_t gather_conv_tiles(const Problem& problem, const GemmView& whole, const KernelConfig& config);

std::int64_t tensor_conv_tiles(const Problem& problem, const GemmView& gemm, const KernelConfig& config);
// Stages of a tile's reduction, which no class of a stride cuts short.
std::int64_t tensor_conv_steps(const Problem& problem, const GemmView& gemm, const KernelConfig& config);

// The product of backward data by columns: pixels of dy by the taps of every channel, without gathering.
GemmView columns_view(const Problem& problem);
std::int64_t column_conv_tiles(const Problem& problem, const KernelConfig& config);

}  // namespace tilewise
