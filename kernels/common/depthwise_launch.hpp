// SPDX-License-Identifier: MIT
// How a launch of a depthwise kernel on matrix units cuts up its outputs (kernels/cuda/diagonal_shape.hpp, band_shape.hpp): worked out
// by the host (src/run/depthwise_grid.cpp) and carried in KernelArgs::geometry, since a block that divides for itself does so before
// its first load. Plain data, for host and kernel.
#pragma once

namespace tilewise {

// Division by a multiplication and a shift: of numbers below 2^31, or quicker where (number + 1) x divisor is below 2^31.
struct LaunchDivisor {
    unsigned divisor, magic, shift, small;

    constexpr LaunchDivisor() : LaunchDivisor(1) {}
    // 2^(31 + bits) / divisor, rounded up, with 2^bits >= divisor; and less than 2^32 / divisor.
    explicit constexpr LaunchDivisor(unsigned by) : divisor(by), magic(0), shift(0), small(0xffffffffu / by) {
        unsigned bits = 0;
        while ((1ull << bits) < by) ++bits;
        shift = bits == 0 ? 0 : bits - 1;
        magic = by == 1 ? 0 : static_cast<unsigned>(((1ull << (31 + bits)) + by - 1) / by);
    }
    constexpr int quotient(int x) const {
        return magic == 0 ? x : static_cast<int>(high(static_cast<unsigned>(x), magic) >> shift);
    }
    constexpr int small_quotient(int x) const { return static_cast<int>(high(static_cast<unsigned>(x) + 1, small)); }

private:
    static constexpr unsigned high(unsigned x, unsigned y) {
        return static_cast<unsigned>((static_cast<unsigned long long>(x) * y) >> 32);
    }
};

// A tile is some columns of some frames, planes of images, and as high as they are; blocks share the rows of all tiles evenly.
struct DepthwiseLaunch {
    int frames, reach, half;  // of a tile: frames, the pixels of a line that a frame's outputs meet, those of a phase
    int total_frames;         // planes of all images
    int part_rows, longer;    // rows of a part; so many parts at first have one more
    LaunchDivisor channel_tiles, column_tiles, height;  // of the outputs
    LaunchDivisor parts;                                // of the reduction, where they are blocks of a cluster
    LaunchDivisor across, pitch;  // of a tile: columns (band: strips of 8) of a frame, slots from frame to frame
    LaunchDivisor depth;          // planes of an image of outputs
};

// Sums of backward weight that a warp adds up, of so many parts. Eight neighbours fill a sector of memory, and four lanes take turns at
// the parts of each; of many parts that takes too long, and sixteen lanes are faster (an H200: at 132, but not at 88).
constexpr int depthwise_sums_per_warp(int parts) {
    constexpr int kManyParts = 97, kFew = 2, kSector = 8;
    return parts >= kManyParts ? kFew : kSector;
}

// The rows that a part takes, counted through tile after tile.
struct DepthwiseRows {
    int at, end;

    constexpr DepthwiseRows(const DepthwiseLaunch& launch, int part)
        : at(part * launch.part_rows + (part < launch.longer ? part : launch.longer)),
          end(at + launch.part_rows + (part < launch.longer ? 1 : 0)) {}
    // The tile of the next rows, the first of these in it, and how many it has.
    struct Run {
        int tile, top, rows;
    };
    constexpr Run next(const DepthwiseLaunch& launch) {
        const int height = static_cast<int>(launch.height.divisor), tile = launch.height.quotient(at);
        const int top = at - tile * height, rows = height - top < end - at ? height - top : end - at;
        at += rows;
        return {tile, top, rows};
    }
};

}  // namespace tilewise
