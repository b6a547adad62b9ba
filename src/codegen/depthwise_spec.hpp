// SPDX-License-Identifier: MIT
// How a depthwise CUDA kernel cuts up its work, from its config alone: the generated source carries these numbers
// (kernels/cuda/depthwise_shape.hpp), and the launch and the grid follow from them.
#pragma once

#include <cstdint>
#include <string>

#include "config/kernel_config.hpp"

namespace tilewise {

struct DepthwiseSpec {
    bool compiled = false;        // filter, stride and dilation are known when the kernel is compiled
    int patch_height = 0;         // outputs that a thread computes, of as many channels as one access has; 0 if not compiled
    int patch_width = 0;
    int patches = 0;              // of a block
    int resident_blocks = 1;      // of a unit, which bounds a thread's registers
    std::int64_t shared_bytes = 0;  // of a block
};

bool has_depthwise_template(const KernelConfig& config);

DepthwiseSpec depthwise_spec(const KernelConfig& config);
std::string depthwise_lines(const KernelConfig& config);

// Taps that a block of the kernel for any filter adds up at once in backward weight, and the channels of its block.
inline constexpr int kAnyWeightTaps = 8, kAnyWeightChannels = 32;

}  // namespace tilewise
