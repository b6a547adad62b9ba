// SPDX-License-Identifier: MIT
// What the grid of a convolution fed by the copy engine tells its kernel (KernelArgs::geometry): set in src/run/tensor_grid.cpp,
// read in kernels/cuda/tensor_conv.hpp.
#pragma once
#include "args.hpp"

namespace tilewise {

struct TensorLaunch {
    int groups_apart;  // whether the map of the activation has the groups as a dimension of its own
};
static_assert(sizeof(TensorLaunch) <= sizeof(int) * kMaxKernelGeometry);

}  // namespace tilewise
