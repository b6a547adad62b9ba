// SPDX-License-Identifier: MIT
// The tensor maps of convolution kernels whose operands the copy engine fetches (kernels/cuda/im2col_conv/im2col_conv.hpp).
#pragma once

#include "family/launch_plan.hpp"

namespace tilewise {

TensorMaps tensor_conv_maps(const Problem& problem, const KernelConfig& config, const LaunchSpec& block);

}  // namespace tilewise
