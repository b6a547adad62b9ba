// SPDX-License-Identifier: MIT
// How a launch of a depthwise kernel with diagonal matrices cuts up its outputs (kernels/cuda/diagonal_shape.hpp): worked out by the
// host (src/run/depthwise_grid.cpp) and carried in KernelArgs::geometry, since a block that divides for itself does so before
// its first load. Plain data, for host and kernel.
#pragma once

namespace tilewise {

// Division of numbers below 2^31 by a multiplication and a shift.
struct LaunchDivisor {
    unsigned divisor, magic, shift;

    constexpr LaunchDivisor() : divisor(1), magic(0), shift(0) {}
    // 2^(31 + bits) / divisor, rounded up, with 2^bits >= divisor.
    explicit constexpr LaunchDivisor(unsigned by) : divisor(by), magic(0), shift(0) {
        unsigned bits = 0;
        while ((1ull << bits) < by) ++bits;
        shift = bits == 0 ? 0 : bits - 1;
        magic = by == 1 ? 0 : static_cast<unsigned>(((1ull << (31 + bits)) + by - 1) / by);
    }
    constexpr int quotient(int x) const {
        const auto high = static_cast<unsigned>((static_cast<unsigned long long>(static_cast<unsigned>(x)) * magic) >> 32);
        return magic == 0 ? x : static_cast<int>(high >> shift);
    }
};

struct DiagonalLaunch {
    int frames, reach, half;  // of a block's tile: frames, the pixels of a line that a frame's outputs meet, those of a phase
    int total_frames;         // planes of all images
    int part_rows, longer;    // rows of a part; so many parts at first have one more
    LaunchDivisor channel_tiles, column_tiles, height;  // of the outputs
    LaunchDivisor across, pitch;                        // of a tile: columns of a frame, slots from frame to frame
    LaunchDivisor depth;                                // planes of an image of outputs
};

}  // namespace tilewise
