// SPDX-License-Identifier: MIT
// How the copy engine of a GPU gathers the activation of a convolution in its im2col mode, along each dimension: the numbers
// of kernels/cuda/im2col_conv/conv_taps.hpp, which the kernels count with, as the host needs them for tensor maps, grids and fit.
#pragma once

#include <cstdint>

#include "config/kernel_config.hpp"
#include "problem/problem.hpp"

namespace tilewise {

// One dimension, of the activation that is gathered: x, or dy for backward data.
struct Im2colLine {
    std::int64_t size = 1;      // pixels of the activation
    std::int64_t rows = 1;      // pixels that a walk visits: of the output, or of one class of a stride
    std::int64_t step = 1;      // between them
    std::int64_t lower = 0;     // the first, before any tap moves it
    std::int64_t farthest = 0;  // by which a tap moves it most
    std::int64_t classes = 1;   // walks that it takes to visit every pixel of the output

    // The last pixel visited lies so far beyond the last of the activation.
    std::int64_t upper() const { return lower + (rows - 1) * step - (size - 1); }
};
std::int64_t im2col_classes(const Problem& problem, int dim);  // those of a line
// With the taps that a stage of the config joins, along the innermost dimension.
Im2colLine im2col_line(const Problem& problem, const KernelConfig& config, int dim);

// Channels per group of the activation that is gathered.
std::int64_t gathered_channels(const Problem& problem);

// Whether the config's activation is gathered so: a filter of one tap without stride and padding needs no walk.
bool walks_taps(const KernelConfig& config);

// Taps along the innermost dimension that are one stage: they read the same pixels, each shifted by a dilation, for which
// the column of pixels has some more lines than the tile has rows (kTapRoomLines in kernels/cuda/wgmma_gemm/wgmma_shape.hpp).
int joined_taps(const KernelConfig& config);
inline constexpr int kTapRoomLines = 8;
int room_lines(const KernelConfig& config);

// Bytes of a line of operands along k, for each tap, and of lines of the columns' operand: 128, or 64 where the tile is no
// whole number of these (kDepthBytes and kColumnLineBytes in kernels/cuda/wgmma_gemm/wgmma_shape.hpp).
std::int64_t depth_bytes(const KernelConfig& config);
std::int64_t column_line_bytes(const KernelConfig& config);

// Lines of channels are summed up in units of this: products, of which the last line may have fewer than it has room for, or
// whole lines in tiles of whole lines of columns (kTrims in kernels/cuda/im2col_conv/im2col_conv.hpp).
std::int64_t summed_unit(const KernelConfig& config);

// Elements of a line of channels, and the lines that hold some channels.
std::int64_t channel_line(const KernelConfig& config);
std::int64_t channel_lines(const KernelConfig& config, std::int64_t channels);

}  // namespace tilewise
