// SPDX-License-Identifier: MIT
// The families of convolution kernels on GPUs. A config belongs to exactly one, by its fields alone; each has templates of its
// own in kernels/, a launch (launch_spec.hpp) and a grid (run/).
#pragma once

#include "config/kernel_config.hpp"

namespace tilewise {

enum class ConvFamily {
    gather,  // an implicit product whose threads fetch the elements of the activation one access at a time: any problem
    halo,    // patches of pixels are staged once, and every tap reads them shifted: few channels per group
    tensor,  // the tensor copy engine walks over the taps: dense layers
    depthwise,  // no matrix product: one channel per group
};

ConvFamily conv_family(const KernelConfig& config);

}  // namespace tilewise
