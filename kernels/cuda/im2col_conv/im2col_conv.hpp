// SPDX-License-Identifier: MIT
// Convolution in three directions on the main loop of wgmma_gemm.hpp: the copy engine gathers columns of pixels at one tap
// (im2col), so that a stage is, as for a GEMM, lines of 128 bytes in the 128-byte swizzle.
//   forward          rows: pixels of y, x at one tap and a line of channels    columns: weights [k][tap][a line of c]
//   backward data    rows: pixels of dx (of one class of a stride), dy shifted  columns: weights, lines along c for each k
//   backward weight  rows: channels of dy, lines along them for each pixel      columns: x at the tap of each line of channels
// The reduction runs over taps and lines of channels, taps slowest; for backward weight over pixels, in as many parts as
// split_k says, whose sums meet in the workspace. A tap of backward weight begins a new line of columns, so tiles may hold
// columns that no weight has.
// Groups whose channels end inside a line: the next group's follow, and weights of zero for them. Copies begin at multiples of the
// 32 bytes that one product takes of a line: a group that begins between two is preceded by the last channels of the one before,
// for which the weights are zeros as well. As with merged groups, an infinity in one can become a NaN in its neighbour. Tiles
// of 48, 80 and 112 columns are made for such groups: they issue only products that hold some of its channels.
// A stage may hold several taps along w (tile_k of several lines; stride 1): one column of pixels with a few more than the
// tile has rows, which each tap reads shifted by a dilation, and the weights of each. Rows then count the pixels of x that a
// line of y needs, so a few at the end of each line are none of y's.
// Bytes   a tile reads (tile_m + tile_n) x its reduction through the L2 cache: each pixel once for each tap, or stage of taps.
#pragma once
#include "../wgmma_gemm/wgmma_gemm.hpp"
#include "conv_taps.hpp"

namespace tilewise::cuda::im2col_conv {

using namespace wgmma_gemm;

template <int kDims, class Pixel>
TILEWISE_DEVICE void copy_pixels(unsigned to, const TensorMap& map, unsigned barrier, int c, const Pixel& from,
                                 const u16 (&offset)[kDims]) {
    if constexpr (kDims == 1) {
        copy_im2col(to, map, barrier, c, from.at[0], from.image, offset[0], kKeepNormal);
    } else if constexpr (kDims == 2) {
        copy_im2col(to, map, barrier, c, from.at[0], from.at[1], from.image, offset[0], offset[1], kKeepNormal);
    } else {
        copy_im2col(to, map, barrier, c, from.at[0], from.at[1], from.at[2], from.image, offset[0], offset[1],
                    offset[2], kKeepNormal);
    }
}

// Columns of C that a line of columns in a tile is: `count` from `first` on.
struct ColumnPlace {
    Index first, count;
};

// The results of backward data with a stride, of backward weight, and of stages of several taps, where tiles are not rows and
// columns of C.
template <class Config>
struct ConvPlaces {
    using Shape = WgmmaShape<Config>;
    static constexpr int kDims = Config::ndim, kTaps = Shape::kTaps, kLine = Shape::kColumnLine;
    static constexpr Direction kDirection = Config::direction;
    static constexpr bool kHasClasses = kDirection == Direction::backward_data && kTaps == 1;
    static constexpr bool kMoves = kDirection != Direction::forward || kTaps > 1 || !Shape::kStoresWhole;

    const KernelArgs& args;
    bool whole;                                   // whether tiles are rows and columns of C after all
    Divisor rows[kHasClasses ? kDims : 1];        // of the tiles' space, innermost first
    int first[kHasClasses ? kDims : 1], of = -1;  // pixel of the class `of`

    explicit TILEWISE_DEVICE ConvPlaces(const KernelArgs& kernel_args) : args(kernel_args) {
        if constexpr (kTaps > 1) {
            whole = false;
            rows[0] = Divisor(u32(line_of(args.conv, 0).template walked_rows<kDirection>(kTaps)));
        } else if constexpr (kHasClasses) {
            whole = class_count<kDims, kDirection>(args.conv) == 1;
            TILEWISE_UNROLL
            for (int i = 0; i < kDims; ++i) rows[i] = Divisor(u32(line_of(args.conv, i).template rows<kDirection>()));
        } else {
            whole = kDirection == Direction::forward || args.conv.c % kLine == 0;
        }
        // A tile's last columns leave with what follows them, which must not be there.
        if (!Shape::kStoresWhole && args.n > Shape::kTileN) whole = false;
    }

    TILEWISE_DEVICE void begin(const TilePlace& tile) {
        if constexpr (kHasClasses) {
            int index = static_cast<int>(tile.batch / u32(args.conv.groups));
            if (index == of) return;
            of = index;
            TILEWISE_UNROLL
            for (int i = 0; i < kDims; ++i) {
                const ConvLine line = line_of(args.conv, i);
                first[i] = line.pixel(0, index % line.stride);
                index /= line.stride;
            }
        }
    }

    TILEWISE_DEVICE int group(const TilePlace& tile) const {
        return static_cast<int>(kHasClasses ? tile.batch % u32(args.conv.groups) : tile.batch);
    }

    TILEWISE_DEVICE bool in_boxes() const { return whole; }
    using Box = MatrixPlaces::Box;
    TILEWISE_DEVICE Box box(const TilePlace& tile, int row) const { return {row, static_cast<int>(tile.batch)}; }
    TILEWISE_DEVICE void store(const TensorMap& map, unsigned from, int column, const Box& box) const {
        store_box(map, from, column, box.row, box.batch);
    }

    // The row of C that a row of the tiles is, or -1.
    TILEWISE_DEVICE Index row(Index at) const {
        if constexpr (kTaps > 1) return joined_row(u32(at));
        if constexpr (kHasClasses) return class_row(u32(at));
        return at < args.m ? at : -1;
    }

    // A few rows at the end of every line of pixels are none.
    TILEWISE_DEVICE Index joined_row(u32 here) const {
        const u32 line = rows[0].divide(here), pixels = u32(line_of(args.conv, 0).template rows<kDirection>());
        const Index row = Index(line) * pixels + here;
        return here < pixels && row < args.m ? row : -1;
    }
    TILEWISE_DEVICE Index class_row(u32 left) const {
        Index pixel = 0, size = 1;
        TILEWISE_UNROLL
        for (int i = 0; i < kDims; ++i) {
            const ConvLine line = line_of(args.conv, i);
            const u32 next = rows[i].divide(left);
            const int here = int(left) * line.stride + first[i];
            if (here >= line.in) return -1;
            pixel += here * size;
            size *= line.in;
            left = next;
        }
        return left < u32(args.conv.images) ? left * size + pixel : -1;
    }

    // The line of columns begins at a multiple of its length.
    TILEWISE_DEVICE ColumnPlace columns(int at) const {
        if constexpr (kDirection != Direction::backward_weight) return {at, args.n - at};
        const u32 lines = (u32(args.conv.c) + kLine - 1) / kLine, unit = u32(at) / kLine, tap = unit / lines;
        const Index begin = Index(unit - tap * lines) * kLine + at % kLine, first_column = tap * args.conv.c + begin;
        return {first_column, first_column < args.n ? args.conv.c - begin : 0};
    }
};

template <class Config>
struct ConvSource {
    using Shape = WgmmaShape<Config>;
    using Order = TileOrder<Shape::kClusterM, Shape::kClusterN>;
    using Places = ConvPlaces<Config>;
    static constexpr int kDims = Config::ndim;
    static constexpr Direction kDirection = Config::direction;
    static constexpr bool kOverPixels = kDirection == Direction::backward_weight;
    static constexpr bool kMayBeEmpty = Places::kHasClasses;  // a class that meets no tap
    static constexpr bool kTrims = !kOverPixels && Shape::kTileN > 32 && Shape::kTileN % 64 != 0;
    static constexpr int kColumnBoxes = Shape::kTileN / Shape::kColumnLine;
    static constexpr int kLine = kOverPixels ? Shape::kColumnLine : Shape::kDepth;  // of channels
    static_assert(Shape::kClusterN == 1 || kOverPixels, "columns of pixels are copied for one block");
    static_assert(Shape::kClusterM == 1 || !kOverPixels, "columns of pixels are copied for one block");
    static_assert(!Shape::kSwapped);
    static constexpr int kTaps = Shape::kTaps;
    static_assert(kTaps == 1 || !kOverPixels);

    using Walk = PixelWalk<kDims, kDirection, kTaps>;
    using Taps = TapWalk<kDims, kTaps>;

    const KernelArgs& args;
    const TensorMap &map_a, &map_b;
    ClusterPlace<Shape> me;
    Walk pixels;
    int lines;  // of channels, in the reduction or of a tap's columns
    // The tile has these.
    int column, group;
    int before = 0;              // channels of the group before that are copied with this one's
    typename Walk::Pixel pixel;  // forward, backward data
    Taps taps;
    int taps_class = -1;
    int line;
    int box_channel[kOverPixels ? kColumnBoxes : 1];
    u16 box_offset[kOverPixels ? kColumnBoxes : 1][kDims];

    TILEWISE_DEVICE ConvSource(const KernelArgs& kernel_args, const TensorMap& a, const TensorMap& b)
        : args(kernel_args), map_a(a), map_b(b), pixels(kernel_args.conv), lines(line_count(kernel_args.conv)) {}

    // A group has so many, in the activation that is gathered.
    static TILEWISE_DEVICE int summed_channels(const KernelConv& conv) {
        return static_cast<int>(kDirection == Direction::backward_data ? conv.k : conv.c);
    }
    static TILEWISE_DEVICE int line_count(const KernelConv& conv) {
        return (summed_channels(conv) + kLine - 1) / kLine;
    }
    static TILEWISE_DEVICE int all_taps(const KernelConv& conv) {
        return static_cast<int>(conv.filter[0] * conv.filter[1] * conv.filter[2]);
    }

    static TILEWISE_DEVICE Order order(const KernelArgs& args) {
        Index rows = args.m, columns = args.n, batch = args.batch;
        if constexpr (Places::kHasClasses) {
            rows = args.conv.images;
            TILEWISE_UNROLL
            for (int i = 0; i < kDims; ++i) rows *= line_of(args.conv, i).template rows<kDirection>();
            batch *= class_count<kDims, kDirection>(args.conv);
        }
        if constexpr (kTaps > 1) {
            const ConvLine w = line_of(args.conv, 0);
            rows = args.m / w.template rows<kDirection>() * w.template walked_rows<kDirection>(kTaps);
        }
        if constexpr (kOverPixels) columns = Index(all_taps(args.conv)) * line_count(args.conv) * kLine;
        return {args, rows, columns, batch, Shape::kTileM, Shape::kTileN};
    }

    static TILEWISE_DEVICE int group_of(const KernelArgs& args, const TilePlace& tile) {
        return static_cast<int>(Places::kHasClasses ? tile.batch % u32(args.conv.groups) : tile.batch);
    }

    // The steps of tiles of one class are counted once.
    struct Steps {
        const KernelArgs& args;
        int of = -1, count = 0;
        explicit TILEWISE_DEVICE Steps(const KernelArgs& kernel_args) : args(kernel_args) {}
        TILEWISE_DEVICE int operator()(const TilePlace& tile) {
            const int index = Places::kHasClasses ? static_cast<int>(tile.batch / u32(args.conv.groups)) : 0;
            if (index != of) of = index, count = steps(args, tile);
            return count;
        }
    };

    // Products along k of the next stage: the last line of a group's channels may be short.
    struct Depths {
        int lines, last, line;
        TILEWISE_DEVICE Depths(const KernelArgs& args, int step) {
            if constexpr (kTrims) {
                lines = line_count(args.conv);
                last = (summed_channels(args.conv) - (lines - 1) * kLine) * Shape::A::bytes;
                last = (last + Shape::kStepBytes - 1) / Shape::kStepBytes;
                line = step % lines;
            }
        }
        TILEWISE_DEVICE int next() {
            if constexpr (!kTrims) return Shape::kSteps;
            if (++line == lines) line = 0;
            return uniform(line == 0 ? last : Shape::kSteps);
        }
    };

    // Lines from one tap of a stage to the next.
    static TILEWISE_DEVICE u32 tap_shift(const KernelArgs& args) { return u32(line_of(args.conv, 0).dilation); }

    static TILEWISE_DEVICE Taps taps_of(const KernelArgs& args, const TilePlace& tile) {
        const u32 index = Places::kHasClasses ? tile.batch / u32(args.conv.groups) : 0;
        return Taps::template of_class<kDirection>(args.conv, static_cast<int>(index));
    }
    static TILEWISE_DEVICE int steps(const KernelArgs& args, const TilePlace& tile) {
        if constexpr (kOverPixels) return static_cast<int>((args.k + Shape::kTileK - 1) / Shape::kTileK);
        return taps_of(args, tile).count() * line_count(args.conv);
    }

    TILEWISE_DEVICE void begin(const TilePlace& tile, int step) {
        column = Shape::first_column(tile);
        group = group_of(args, tile);
        before = group * summed_channels(args.conv) % (Shape::kStepBytes / Shape::A::bytes);
        if constexpr (kOverPixels) {
            begin_columns(Shape::first_row(tile));
        } else {
            pixel = pixels.locate(static_cast<u32>(Shape::first_row(tile)));
            const int index = Places::kHasClasses ? static_cast<int>(tile.batch / u32(args.conv.groups)) : 0;
            if (index != taps_class) taps_class = index, taps = taps_of(args, tile);
            line = step % lines;
            taps.go_to(step / lines);
        }
    }

    TILEWISE_DEVICE void copy(unsigned to, unsigned barrier, int step) {
        if constexpr (kOverPixels) {
            copy_over_pixels(to, barrier, step);
        } else {
            copy_over_taps(to, barrier);
        }
    }

private:
    int row = 0;  // backward weight

    TILEWISE_DEVICE void copy_over_taps(unsigned to, unsigned barrier) {
        const bool forward = kDirection == Direction::forward;
        const int channel = line * kLine - before;
        u16 offset[kDims];
        TILEWISE_UNROLL
        for (int i = 0; i < kDims; ++i) offset[i] = taps.offset(i);
        copy_pixels<kDims>(to, map_a, barrier, group * summed_channels(args.conv) + channel, pixel, offset);
        // The map of the weights has lines of channels c, the output's channels of a group, and taps, which go on through
        // those of the other channels, so that so many further on are the next group's.
        const int first_tap = group * static_cast<int>(args.conv.k) * all_taps(args.conv);
        TILEWISE_UNROLL
        for (int i = 0; i < kTaps; ++i) {
            const unsigned at = to + Shape::kBytesA + static_cast<unsigned>(i * Shape::kTapBytes);
            const int tap = first_tap + taps.tap() + (forward ? i : -i);
            copy_columns<Shape>(map_b, at, barrier, column, channel, tap, me.in_m, me.sharing_b);
        }
        if (++line == lines) {
            line = 0;
            taps.advance();
        }
    }

    // Each line of columns is one tap's.
    TILEWISE_DEVICE void begin_columns(int first_row) {
        row = first_row;
        Taps walk = Taps::template of_class<kDirection>(args.conv, 0);
        const int units = all_taps(args.conv) * lines;
        TILEWISE_UNROLL
        for (int box = 0; box < kColumnBoxes; ++box) {
            const int unit = column / kLine + box, tap = unit / lines;
            // Beyond the last: no channel is there, and zeros come.
            const int channel = unit < units ? (unit - tap * lines) * kLine : static_cast<int>(args.conv.c);
            walk.go_to(unit < units ? tap : 0);
            box_channel[box] = group * static_cast<int>(args.conv.c) + channel;
            TILEWISE_UNROLL
            for (int i = 0; i < kDims; ++i) box_offset[box][i] = walk.offset(i);
        }
    }

    TILEWISE_DEVICE void copy_over_pixels(unsigned to, unsigned barrier, int step) {
        copy_rows<Shape>(map_a, to, barrier, row, step * Shape::kTileK, group, me.in_n, me.sharing_a);
        const typename Walk::Pixel from = pixels.locate(static_cast<u32>(step * Shape::kTileK));
        TILEWISE_UNROLL
        for (int box = 0; box < kColumnBoxes; ++box) {
            copy_pixels<kDims>(
                to + Shape::kBytesA + static_cast<unsigned>(box * Shape::kTileK * Shape::kColumnLineBytes), map_b,
                barrier, box_channel[box], from, box_offset[box]);
        }
    }
};

// A filter of one tap without stride or padding: plain matrices, a batch of one for each group.
template <class Config>
struct PointwiseSource : MatrixSource<Config> {
    using MatrixSource<Config>::MatrixSource;

    TILEWISE_DEVICE void begin(const TilePlace& tile, int step) {
        MatrixSource<Config>::begin(tile, step);
        this->batch_rows = this->batch_columns = static_cast<int>(tile.batch);
    }
    // Boxes are whole here, also of a matrix with fewer lines than a tile (src/family/cuda/tensor_grid.cpp).
    TILEWISE_DEVICE unsigned copied_bytes() const { return WgmmaShape<Config>::kCopiedBytes; }
};

template <class Config, bool pointwise = Config::filter_1x1>
struct ConvSourceOf {
    using Type = ConvSource<Config>;
};
template <class Config>
struct ConvSourceOf<Config, true> {
    using Type = PointwiseSource<Config>;
};

template <class Config>
using Im2colConv = WgmmaGemm<Config, typename ConvSourceOf<Config>::Type>;

}  // namespace tilewise::cuda::im2col_conv

#define TILEWISE_CUDA_IM2COL_CONV(Config)                                                                           \
    extern "C" __global__ void __launch_bounds__(Config::threads, 1) TILEWISE_KERNEL_SYMBOL(                        \
        const __grid_constant__ tilewise::KernelArgs args, const __grid_constant__ tilewise::cuda::TensorMap a,     \
        const __grid_constant__ tilewise::cuda::TensorMap b, const __grid_constant__ tilewise::cuda::TensorMap c) { \
        const tilewise::cuda::im2col_conv::Im2colConv<Config> conv{args, a, b, c, tilewise::gpu::shared_start()};   \
        conv.run();                                                                                                 \
    }
