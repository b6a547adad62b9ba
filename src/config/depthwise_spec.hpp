// SPDX-License-Identifier: MIT
// How a depthwise GPU kernel cuts up its work, from its config alone: rules, the launch and the grid follow from these numbers, and
// the generated source carries them (kernels/gpu/depthwise_shape.hpp).
#pragma once

#include <cstdint>

#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"

namespace tilewise {

struct DepthwiseSpec {
    int strip_height =
        0;                // outputs that a thread (strips) or a block (toeplitz) walks down; the least (block_diagonal)
    int strip_width = 0;  // outputs of a line of it
    int strips = 0;       // of a block
    int resident_blocks = 1;        // of a unit, which bounds a thread's registers
    std::int64_t shared_bytes = 0;  // of a block
    int line_slots = 0;             // block_diagonal: pixels of a line in shared memory
    int ring_stages = 0;            // and lines of its ring
};
// Whether the extents of a depthwise config, which nobody need have checked, are such that a block can be described: the tile is a whole
// multiple of its parts, and all are few enough to count with.
bool has_depthwise_spec(const KernelConfig& config);
DepthwiseSpec depthwise_spec(const KernelConfig& config, const ArchSpec& arch);

// The most bytes of shared memory of a block by slices: all that so many blocks of a unit may have.
std::int64_t slice_shared_bytes(const KernelConfig& config);

// An extent that is compiled in, counted from the last dimension; 1 where there is none.
std::int64_t extent_from_last(const Extents& extents, int from_last);
// Lanes of a warp along a line of outputs, the others being beside them along channels; 0 where they do not fit.
int strip_lanes_along(const KernelConfig& config, const ArchSpec& arch);
// Inputs that a line of the patch meets; their places are bits of a word.
std::int64_t strip_line_inputs(const KernelConfig& config, int width);
// Rows of outputs that a line of inputs can meet.
std::int64_t strip_window_rows(const KernelConfig& config);

// The one shape that the template of depthwise_toeplitz has (kernels/cuda/depthwise_toeplitz/toeplitz_shape.hpp).
inline constexpr Shape3 kToeplitzWave = {4, 2, 1}, kToeplitzWarp = {16, 8, 16};

// Taps that a block of the kernel for any filter adds up at once in backward weight; its channels are as many as a wave has lanes.
inline constexpr int kAnyWeightTaps = 8;

}  // namespace tilewise
