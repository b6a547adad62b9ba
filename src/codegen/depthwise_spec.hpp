// SPDX-License-Identifier: MIT
// How a depthwise CUDA kernel cuts up its work, from its config alone: the generated source carries these numbers
// (kernels/cuda/depthwise_shape.hpp), and the launch and the grid follow from them.
#pragma once

#include <cstdint>
#include <string>

#include "config/kernel_config.hpp"

namespace tilewise {

// What is known when the kernel is compiled: nothing; the filter, which plain arithmetic walks over strip by strip; or that,
// and that matrix units do it, with a band matrix for each channel or a diagonal one for each tap; or that, and that plain
// arithmetic reads what asynchronous copies have put into shared memory (config/slab_plan.hpp).
enum class DepthwiseKind { any, strips, band, diagonal, slab };

struct DepthwiseSpec {
    DepthwiseKind kind = DepthwiseKind::any;
    int strip_height = 0;           // outputs that a thread (strips) or a block (band) walks down; the least (diagonal)
    int strip_width = 0;            // outputs of a line of it
    int strips = 0;                 // of a block
    int resident_blocks = 1;        // of a unit, which bounds a thread's registers
    std::int64_t shared_bytes = 0;  // of a block
    int line_slots = 0;             // diagonal: pixels of a line in shared memory
    int ring_stages = 0;            // and lines of its ring
};

bool has_depthwise_template(const KernelConfig& config);

DepthwiseSpec depthwise_spec(const KernelConfig& config);
std::string depthwise_lines(const KernelConfig& config);

// Taps that a block of the kernel for any filter adds up at once in backward weight, and the channels of its block.
inline constexpr int kAnyWeightTaps = 8, kAnyWeightChannels = 32;

}  // namespace tilewise
