// SPDX-License-Identifier: MIT
// How depthwise kernels with diagonal matrices cut up their work (block_diagonal_conv.hpp, block_diagonal_wgrad.hpp). A block takes some
// channels of the outputs of some frames, a frame being a plane of an image. At a time it has a row of outputs of all its frames, and
// counts them through frame by frame; every warp takes 16 of them, wherever they lie, so no width wastes any. The lines of
// pixels that the rows meet come into a ring in shared memory as they lie in memory, [pixel][channel], with the padding beside
// them. Pixels that an output with stride 2 meets through even taps, and those through odd ones, lie apart: neighbouring
// outputs find neighbouring pixels.
#pragma once
#include "../../common/depthwise_tiles_args.hpp"
#include "../../gpu/depthwise_taps.hpp"
#include "../primitives.hpp"

namespace tilewise::cuda::depthwise_block_diagonal {

template <class Config>
struct BlockDiagonalShape {
    static constexpr int kLanes = 32, kBytes = 2, kTile = 16, kGroup = 8;  // outputs, and channels, of a product
    static constexpr int kPixelWarps = Config::wave_m, kChannelWarps = Config::wave_n;
    static constexpr int kThreads = kPixelWarps * kChannelWarps * kLanes, kMostOutputs = kPixelWarps * kTile;
    static constexpr int kChannels = Config::tile_n, kOwn = kChannels / kChannelWarps;  // of a block, of a warp
    static constexpr int kGroups = kOwn / kGroup;                                       // of 8 channels of a warp
    static constexpr int kDepth = Config::ct_filter[0], kRows = Config::ct_filter[1], kColumns = Config::ct_filter[2];
    static constexpr bool kIs3d = Config::ndim == 3;
    static constexpr int kTaps = kDepth * kRows * kColumns;
    static constexpr int kStride = Config::ct_stride[1];
    static_assert(Config::ct_stride[2] == kStride && (kStride == 1 || kStride == 2) && Config::ct_stride[0] == 1);
    static_assert(Config::ct_dilation[0] <= 1 && Config::ct_dilation[1] <= 1 && Config::ct_dilation[2] <= 1);
    static_assert(Config::threads == kThreads && kGroups % 2 == 0);
    // Pairs of neighbouring taps of a row share a product; an odd one is left over.
    static constexpr int kPairs = kColumns / 2, kSingles = kColumns % 2, kProducts = kPairs + kSingles;
    using Window = RowWindow<false, kRows, kStride, 1>;

    // 16 bytes more than the channels: 8 neighbouring pixels' 16 bytes lie in different banks.
    static constexpr int kPitch = kChannels * kBytes + 16, kChunks = kChannels / kGroup;
    static constexpr int kMostSlots = Config::line_slots;  // pixels of a line
    static constexpr int kStages = Config::ring_stages;
    static_assert(kPitch % 32 == 16 && kThreads % kChunks == 0);

    static TILEWISE_DEVICE int pixel_warp() { return thread_index() / kLanes % kPixelWarps; }
    static TILEWISE_DEVICE int channel_warp() { return thread_index() / kLanes / kPixelWarps; }
};

// The frames of a tensor and their pixels. An image has less than 2^31 bytes.
struct FrameGrid {
    int depth, height, width;
    int image_stride, pixel_stride;

    // From an image's first element to one of a pixel, which may lie outside.
    TILEWISE_DEVICE int offset(int plane, int line, int column) const {
        return ((plane * height + line) * width + column) * pixel_stride;
    }
    TILEWISE_DEVICE int line_bytes(int element_bytes) const { return width * pixel_stride * element_bytes; }
};
TILEWISE_DEVICE FrameGrid frame_grid(const Index (&size)[kMaxKernelDims], const KernelActivation& t) {
    return {int(size[0]), int(size[1]), int(size[2]), int(t.image_stride), int(t.pixel_stride)};
}

// The outputs of a row that a block takes together: some columns of some frames.
template <class Shape>
struct BlockDiagonalTile {
    const DepthwiseTilesArgs& launch;
    int first_frame, first_column;

    TILEWISE_DEVICE BlockDiagonalTile(const DepthwiseTilesArgs& from, int tile) : launch(from) {
        const int frame = launch.column_tiles.quotient(tile);
        first_frame = frame * launch.frames;
        first_column = (tile - frame * int(launch.column_tiles.divisor)) * across();
    }
    TILEWISE_DEVICE int across() const { return int(launch.across.divisor); }
    // The slot of a line where output o meets tap 0; outputs past the last are the last.
    TILEWISE_DEVICE int slot(int o) const {
        const int last = launch.frames * across() - 1, own = o < last ? o : last,
                  frame = launch.across.small_quotient(own);
        return frame * int(launch.pitch.divisor) + own - frame * across();
    }
    // The image of a frame, which becomes its plane.
    TILEWISE_DEVICE int image_of(int& frame) const {
        const int image = Shape::kIs3d ? launch.depth.quotient(frame) : frame;
        frame -= image * int(launch.depth.divisor);
        return image;
    }
    // Slots from tap 0 to an even tap, and from an even tap to the one after it.
    static TILEWISE_DEVICE constexpr int to_even_tap(int tap) { return Shape::kStride == 1 ? tap : tap / 2; }
    TILEWISE_DEVICE int to_next_tap() const { return Shape::kStride == 1 ? 1 : launch.half; }
};

// Lines of pixels on their way to the ring, all planes that a frame of outputs meets at once.
template <class Shape, int slots, int planes>
struct BlockDiagonalLines {
    static constexpr int kRound = Shape::kThreads / Shape::kChunks;  // slots that the threads take at a time
    static constexpr int kCopies = ceil_div(slots * planes, kRound);
    static constexpr int kBytes = slots * planes * Shape::kPitch;  // of a line
    const char* from[kCopies];                                     // in the next line
    SharedAddress line_step;                                       // bytes
    SharedAddress to;
    u32 inside;  // bits

    // From `first_line` on, which may lie outside. `first_column`, `plane_shift`: where the pixels of the block's outputs begin.
    // Pixels that the outputs meet, or the outputs themselves.
    TILEWISE_DEVICE BlockDiagonalLines(const void* data, const FrameGrid& grid, const BlockDiagonalTile<Shape>& block,
                                       bool meets, int first_line, int first_column, int plane_shift, int first_channel,
                                       int channels)
        : line_step(SharedAddress(grid.line_bytes(Shape::kBytes))), inside(0) {
        const int chunk = thread_index() % Shape::kChunks, first = thread_index() / Shape::kChunks;
        const int channel = first_channel + chunk * Shape::kGroup;
        const DepthwiseTilesArgs& launch = block.launch;
        const LaunchDivisor& pitch = meets ? launch.pitch : launch.across;
        const int reach = meets ? launch.reach : block.across();
        to = first * Shape::kPitch + chunk * 16;
        TILEWISE_UNROLL
        for (int i = 0; i < kCopies; ++i) {
            const int slot = first + i * kRound, z = planes == 1 ? 0 : slot / slots, s = slot - z * slots;
            const int in_block = pitch.small_quotient(s), place = s - in_block * int(pitch.divisor);
            const bool odd = meets && Shape::kStride == 2 && place >= launch.half;
            const int pixel = !meets || Shape::kStride == 1 ? place : odd ? (place - launch.half) * 2 + 1 : place * 2;
            int frame = block.first_frame + in_block;
            const int column = first_column + pixel;
            const bool is_frame = in_block < launch.frames && frame < launch.total_frames;
            const int image = block.image_of(frame), plane = frame + z - plane_shift;
            const bool has = is_frame && pixel < reach && channel < channels && u32(column) < u32(grid.width) &&
                             u32(plane) < u32(grid.depth);
            const int offset = grid.offset(plane, first_line, column) + channel;
            from[i] = static_cast<const char*>(data) + (Index(image) * grid.image_stride + offset) * Shape::kBytes;
            inside |= has ? 1u << i : 0u;
        }
        hide(line_step), hide(to);
    }
    // The next line, or zeros where it is outside.
    TILEWISE_DEVICE void copy(SharedAddress stage, bool has_line) {
        TILEWISE_UNROLL
        for (int i = 0; i < kCopies; ++i) {
            const bool all = (i + 1) * kRound <= slots * planes;
            if (all || thread_index() < (slots * planes - i * kRound) * Shape::kChunks)
                copy_async<16>(stage + to + i * kRound * Shape::kPitch, from[i],
                               has_line && (inside >> i & 1u) != 0 ? 16 : 0);
            from[i] += line_step;
        }
    }
};

template <int bytes, int stages>
TILEWISE_DEVICE SharedAddress next_stage(SharedAddress at) {
    return at == (stages - 1) * bytes ? 0 : at + bytes;
}

}  // namespace tilewise::cuda::depthwise_block_diagonal
