// SPDX-License-Identifier: MIT
// The grid and the tensor maps of convolution kernels whose operands the copy engine fetches (kernels/cuda/tensor_conv.hpp).
#pragma once

#include "device/device.hpp"

namespace tilewise {

std::int64_t tensor_conv_tiles(const Problem& problem, const KernelConfig& config);
// Stages of a tile's reduction, which no class of a stride cuts short.
std::int64_t tensor_conv_steps(const Problem& problem, const KernelConfig& config);
std::vector<TensorMapSpec> tensor_conv_maps(const Problem& problem, const KernelConfig& config,
                                            const LaunchSpec& block);

}  // namespace tilewise
