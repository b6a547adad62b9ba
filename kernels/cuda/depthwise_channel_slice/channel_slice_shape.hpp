// SPDX-License-Identifier: MIT
// How depthwise_channel_slice.hpp cuts up its work: a block takes some channels of a tile of rows and images
// (channel_slice_args.hpp). What the tile meets of the inputs, a slice, lies in shared memory as it lies in memory,
// [image][row][column][channel], without padding: the pixels of an image's rows follow each other, so that a copy needs no
// coordinates. Rows outside the image are a line of zeros.
#pragma once
#include "../../common/channel_slice_args.hpp"
#include "../../gpu/depthwise_store.hpp"

namespace tilewise::cuda::depthwise_channel_slice {

template <class Config>
struct ChannelSliceShape {
    static constexpr int kLanes = 32, kBytes = 2, kChunk = 8;  // channels of a copy
    static constexpr int kChannels = Config::tile_n, kVector = Config::warp_m * Config::warp_n / kLanes;
    static constexpr int kAcross = kChannels / kVector;  // lanes side by side along channels
    static constexpr int kThreads = Config::threads, kPlaces = kThreads / kAcross;
    static_assert(kAcross * kVector == kChannels && kLanes % kAcross == 0 && kLanes / kAcross == Config::warp_m);
    static_assert(Config::wave_m * kLanes == kThreads && kThreads % (kChannels / kChunk) == 0);
    static constexpr int kOwnRows = Config::tile_m / (Config::wave_m * Config::warp_m);  // of outputs, of a thread
    static constexpr int kRows = Config::ct_filter[1], kColumns = Config::ct_filter[2], kTaps = kRows * kColumns;
    static constexpr int kStride = Config::ct_stride[2];
    static_assert(Config::ct_stride[1] == kStride && Config::ct_filter[0] == 1);
    static_assert(Config::ct_dilation[1] <= 1 && Config::ct_dilation[2] <= 1);
    static constexpr int kLines = (kOwnRows - 1) * kStride + kRows;  // of inputs, that a thread meets
    static constexpr int kPitch = kChannels * kBytes;                // of a pixel
    using Window = RowWindow<false, kColumns, kStride, 1>;           // of the outputs that a column of inputs meets

    static TILEWISE_DEVICE int lane_across() { return thread_index() % kAcross; }
    static TILEWISE_DEVICE int place() { return thread_index() / kAcross; }
};

TILEWISE_DEVICE int larger(int x, int y) { return x > y ? x : y; }

// A range of images and rows, inside the tensor.
struct ChannelSliceRange {
    int first_image, images, first_row, rows;

    // The outputs of a tile.
    TILEWISE_DEVICE ChannelSliceRange(const ChannelSliceArgs& launch, int tile, int all_images, int height) {
        const int group = launch.bands.quotient(tile);
        first_image = group * launch.images, first_row = (tile - group * int(launch.bands.divisor)) * launch.rows;
        images = least(launch.images, all_images - first_image), rows = least(launch.rows, height - first_row);
    }
    // The inputs that these outputs meet; `before` is the padding above them.
    template <class Shape>
    TILEWISE_DEVICE ChannelSliceRange inputs(int before, int height) const {
        const int first = first_row * Shape::kStride - before;
        const int end = first + (rows - 1) * Shape::kStride + Shape::kRows;
        ChannelSliceRange range = *this;
        range.first_row = larger(first, 0);
        range.rows = larger(least(end, height) - range.first_row, 0);
        return range;
    }
};

// Asks for a range of x or dy, to be in shared memory from `to` on.
template <class Shape>
TILEWISE_DEVICE void copy_slice(const void* data, const PixelGrid& grid, const ChannelSliceRange& range, int slice_rows,
                                int first_channel, int channels, SharedAddress to) {
    constexpr int chunks = Shape::kChannels / Shape::kChunk, round = Shape::kThreads / chunks;
    const int chunk = thread_index() % chunks, first = thread_index() / chunks, width = grid.size[2];
    const int channel = first_channel + chunk * Shape::kChunk;
    if (channel >= channels) return;  // what is there is never written anywhere
    const int pixels = range.rows * width, step = round * int(grid.pixel_stride) * Shape::kBytes;
    const Index element =
        range.first_image * grid.image_stride + (Index(range.first_row) * width + first) * grid.pixel_stride;
    const char* image_from = static_cast<const char*>(data) + (element + channel) * Shape::kBytes;
    SharedAddress image_to = to + first * Shape::kPitch + chunk * 16;
    TILEWISE_ROLLED
    for (int image = 0; image < range.images; ++image) {
        const char* from = image_from;
        SharedAddress at = image_to;
        TILEWISE_ROLLED
        for (int pixel = first; pixel < pixels; pixel += round) {
            copy_async<16>(at, from, 16);
            from += step, at += round * Shape::kPitch;
        }
        image_from += grid.image_stride * Shape::kBytes;
        image_to += slice_rows * width * Shape::kPitch;
    }
}

// The same pixels to the L2 cache, one access for each: what can be done before the kernels before this one have finished.
template <class Shape>
TILEWISE_DEVICE void prefetch_slice(const void* data, const PixelGrid& grid, const ChannelSliceRange& range,
                                    int first_channel) {
    const int pixels = range.rows * grid.size[2];
    const Index first =
        range.first_image * grid.image_stride + Index(range.first_row) * grid.size[2] * grid.pixel_stride;
    const char* from = static_cast<const char*>(data) + (first + first_channel) * Shape::kBytes;
    TILEWISE_ROLLED
    for (int image = 0; image < range.images; ++image, from += grid.image_stride * Shape::kBytes) {
        TILEWISE_ROLLED
        for (int pixel = thread_index(); pixel < pixels; pixel += Shape::kThreads)
            prefetch_line(from + Index(pixel) * grid.pixel_stride * Shape::kBytes);
    }
}

// A thread's piece of a tile: an image of it, the first of its rows, and the first of its columns.
struct ChannelSlicePiece {
    int image, row, first_column;

    TILEWISE_DEVICE ChannelSlicePiece(const ChannelSliceArgs& launch, int piece, int own_rows) {
        const int line = launch.tile_images.quotient(piece), rows = launch.segments.quotient(line);
        image = piece - line * int(launch.tile_images.divisor), row = rows * own_rows;
        first_column = (line - rows * int(launch.segments.divisor)) * launch.columns;
    }
};
TILEWISE_DEVICE int channel_slice_pieces(const ChannelSliceArgs& launch, int own_rows) {
    return int(launch.tile_images.divisor) * int(launch.segments.divisor) * ceil_div(launch.rows, own_rows);
}

// Where the lines of inputs that a piece meets are in shared memory, from a column on; those outside are zeros.
template <class Shape>
struct ChannelSliceLines {
    SharedAddress at[Shape::kLines];

    // `first_row` of the image, which may lie outside; `image` of the slice.
    TILEWISE_DEVICE ChannelSliceLines(const ChannelSliceRange& slice, int slice_rows, int width, int image,
                                      int first_row, int column, SharedAddress stage, SharedAddress zeros) {
        const SharedAddress own =
            SharedAddress(column * Shape::kPitch + Shape::lane_across() * Shape::kVector * Shape::kBytes);
        TILEWISE_UNROLL
        for (int i = 0; i < Shape::kLines; ++i) {
            const int row = first_row - slice.first_row + i;
            const int line = (image * slice_rows + row) * width * Shape::kPitch;
            at[i] = own + (u32(row) < u32(slice.rows) ? stage + SharedAddress(line) : zeros);
        }
    }
    TILEWISE_DEVICE void advance(int columns) {
        TILEWISE_UNROLL
        for (int i = 0; i < Shape::kLines; ++i) at[i] += columns * Shape::kPitch;
    }
};

}  // namespace tilewise::cuda::depthwise_channel_slice
