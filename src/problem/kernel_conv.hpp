// SPDX-License-Identifier: MIT
// A convolution as its kernels see it: extents of three dimensions, and the strides of its activations.
#pragma once

#include "kernels/common/args.hpp"
#include "problem/problem.hpp"

namespace tilewise {

KernelConv kernel_conv(const Problem& problem);

}  // namespace tilewise
