// SPDX-License-Identifier: MIT
// Depthwise convolution on matrix units: forward, and backward data, of stride 1 for 16-bit types, channels last. For one channel
// and one row of taps, 8 neighbouring outputs are 16 neighbouring inputs times a band matrix, whose columns are the row of taps,
// each one lower than the one before it. So one mma.sync computes a row of taps for 16 strips (band_shape.hpp); most of its
// products are with zero, which costs less than to do without them. A block walks down its strips line by line; while it
// multiplies one line, it turns the next one around, fetches later ones and writes the row of outputs before. Nothing but
// alpha is applied to the sums.
//
// Floors on an H200, for each output element: one mma.sync for 128 outputs and a row of taps, at 132 x 0.6 / clock (3x3: 0.05
// ps, 7x7: 0.4 ps at 44 % useful products); bytes of one input and one output at 4.27e12 /s (0.94 ps): memory.
#pragma once
#include "band_shape.hpp"
#include "depthwise_shape.hpp"
#include "drain.hpp"

namespace tilewise::cuda {

template <class Config>
struct DepthwiseBand {
    using T = typename Config::A;
    using Shape = BandShape;
    static constexpr bool kBackward = Config::direction == Direction::backward_data;
    static constexpr int kRows = Config::ct_filter[1], kColumns = Config::ct_filter[2];
    static constexpr int kHeight = Config::tile_m / (Config::wave_m * Config::warp_m);  // rows of outputs of a block
    static_assert(kSame<T, typename Config::B> && kSame<T, typename Config::Out> && T::bytes == Shape::kBytes);
    static_assert(Config::threads == Shape::kThreads && Config::tile_n == Shape::kChannels);
    static_assert(Config::ct_filter[0] == 1 && kColumns + Shape::kOutputs - 1 <= Shape::kInputs);
    static_assert(Config::ct_stride[1] == 1 && Config::ct_stride[2] == 1);
    static_assert(Config::ct_dilation[1] == 1 && Config::ct_dilation[2] == 1);
    static constexpr int kPlanes = Shape::kStages * Shape::kRawBytes, kResults = kPlanes + 2 * Shape::kPlaneBytes;
    static_assert(kResults + 2 * Shape::kRowBytes <= Config::shared_bytes);

    const KernelArgs& args;
    PixelGrid in, out;
    BandStrips strips;
    int first_channel, top, rows;  // of the block's outputs
    SharedAddress shared;

    // Rows and columns of taps are met in reverse order on the way back.
    static TILEWISE_DEVICE int before(const KernelConv& conv, int d, int taps) {
        return kBackward ? taps - 1 - int(conv.pad[d]) : int(conv.pad[d]);
    }
    // What a lane has of the band matrix of a row of taps: rows 2 (l % 4) and the one after it of column l / 4, and 8 below.
    TILEWISE_DEVICE void load_band(int channel, int row, u32 (&words)[2]) const {
        const auto* w = static_cast<const typename T::Storage*>(args.b.data) + Index(channel) * kRows * kColumns;
        TILEWISE_UNROLL
        for (int j = 0; j < 2; ++j) {
            words[j] = 0;
            TILEWISE_UNROLL
            for (int e = 0; e < 2; ++e) {
                const int tap = j * 8 + lane_index() % 4 * 2 + e - lane_index() / 4;
                const bool is_tap = u32(tap) < u32(kColumns) && channel < args.conv.groups;
                const int at = kBackward ? (kRows - 1 - row) * kColumns + kColumns - 1 - tap : row * kColumns + tap;
                if (is_tap) words[j] |= u32(w[at]) << (16 * e);
            }
        }
    }

    using Sums = float[Shape::kOwn][kRows][4];
    using Bands = u32[Shape::kOwn][kRows][2];

    // Line j of a turn against every row of outputs that it meets.
    static TILEWISE_DEVICE void multiply(SharedAddress line, int j, const Bands& bands, Sums& sums) {
        TILEWISE_UNROLL
        for (int c = 0; c < Shape::kOwn; ++c) {
            u32 a[4];
            load_matrices<false>(line + c * Shape::kPlanePitch, a);
            TILEWISE_UNROLL
            for (int r = 0; r < kRows; ++r)
                multiply_add<T, T>(sums[c][(j - r + kRows) % kRows], a, bands[c][r][0], bands[c][r][1]);
        }
    }
    // The row of outputs whose last line was line j of a turn, as [channel][strip][8 outputs].
    TILEWISE_DEVICE void close(SharedAddress to, int j, const Sums& sums) const {
        const int lane = lane_index();
        TILEWISE_UNROLL
        for (int c = 0; c < Shape::kOwn; ++c) {
            const float(&sum)[4] = sums[c][(j + 1) % kRows];
            TILEWISE_UNROLL
            for (int half = 0; half < 2; ++half) {
                const u32 pair = pack_pair<T>(sum[half * 2] * args.alpha, sum[half * 2 + 1] * args.alpha);
                store_shared<4>(to + c * Shape::kRowPitch + (lane / 4 + half * 8) * 16 + lane % 4 * 4,
                                Packet<4>{{pair}});
            }
        }
    }
    static TILEWISE_DEVICE void clear(int j, Sums& sums) {
        TILEWISE_UNROLL
        for (int c = 0; c < Shape::kOwn; ++c) {
            TILEWISE_UNROLL
            for (int e = 0; e < 4; ++e) sums[c][(j + 1) % kRows][e] = 0.0f;
        }
    }

    // Where two strips of results go: a lane has 4 channels of one output of each.
    struct Target {
        char* to[2];  // in row 0 of the block
        bool inside[2];
    };
    TILEWISE_DEVICE Target target() const {
        Target t;
        TILEWISE_UNROLL
        for (int i = 0; i < 2; ++i) {
            const int strip = thread_index() / 32 * 2 + i, image = strip / strips.across,
                      channel = lane_index() % 4 * 4;
            const int column =
                strips.first_column + (strip - image * strips.across) * Shape::kOutputs + lane_index() / 4;
            t.inside[i] = image < strips.images && strips.first_image + image < args.conv.images &&
                          column < out.size[2] && first_channel + channel < args.conv.groups;
            const Index at = (strips.first_image + image) * out.image_stride +
                             (Index(top) * out.size[2] + column) * out.pixel_stride + first_channel + channel;
            t.to[i] = static_cast<char*>(args.c.data) + at * Shape::kBytes;
        }
        return t;
    }
    // Turns a row of results around, so that 4 channels of an output are neighbours, and writes it.
    TILEWISE_DEVICE void write(SharedAddress from, const Target& t, int row) const {
        const int lane = lane_index(), i = lane % 8, quarter = lane / 8;
        const int channel = i / 2 * 4 + i % 2 + (quarter & 1) * 2, strip = thread_index() / 32 * 2 + (quarter >> 1);
        u32 words[4];
        load_matrices<true>(from + channel * Shape::kRowPitch + strip * 16, words);
        const Index offset = Index(row) * out.size[2] * out.pixel_stride * Shape::kBytes;
        TILEWISE_UNROLL
        for (int s = 0; s < 2; ++s) {
            if (t.inside[s]) store_global<8>(t.to[s] + offset, Packet<8>{{words[s * 2], words[s * 2 + 1]}});
        }
    }

    TILEWISE_DEVICE void walk() const {
        const int shift = before(args.conv, 2, kColumns), first_line = top - before(args.conv, 1, kRows);
        const BandLines lines(args.a.data, kBackward ? args.conv.y : args.conv.x, in.size[2], int(args.conv.images),
                              int(args.conv.groups), shift, strips, first_channel, shared);
        const int own = thread_index() / 32 * Shape::kOwn, lane = lane_index(), quarter = lane / 8;
        // Lines that there are, of those that the rows need.
        const int begin = first_line < 0 ? 0 : first_line, last = first_line + rows + kRows - 1;
        const int end = last < in.size[1] ? last : in.size[1];
        TILEWISE_UNROLL
        for (int stage = 0; stage < Shape::kStages; ++stage) {
            if (begin + stage < end) lines.copy(begin + stage, stage);
            commit_copies();
        }
        Bands bands;
        TILEWISE_UNROLL
        for (int c = 0; c < Shape::kOwn; ++c) {
            TILEWISE_UNROLL
            for (int r = 0; r < kRows; ++r) load_band(first_channel + own + c, r, bands[c][r]);
        }
        const Target to = target();
        const SharedAddress planes = shared + kPlanes, results = shared + kResults + own * Shape::kRowPitch;
        const int row_pixel = strips.pixel((quarter & 1) * 8 + lane % 8) + (quarter >> 1) * 8;
        const SharedAddress own_plane = planes + own * Shape::kPlanePitch + row_pixel * Shape::kBytes;
        Sums sums = {};
        wait_copies<Shape::kStages - 1>();
        sync_block();
        lines.turn(shared, planes, strips.pixels());
        int done = 0;  // lines that were multiplied
        TILEWISE_ROLLED
        for (int first = 0; first < rows + kRows - 1; first += kRows) {
            TILEWISE_UNROLL
            for (int j = 0; j < kRows; ++j) {
                const int line = first_line + first + j, row = first + j - (kRows - 1);
                const bool multiplies = line >= begin && line < end;  // the same for all threads
                if (row < rows && (multiplies || row >= 0)) {
                    if (multiplies) wait_copies<Shape::kStages - 2>();
                    sync_block();
                    if (multiplies) {
                        if (line + 1 < end)
                            lines.turn(shared + (done + 1) % Shape::kStages * Shape::kRawBytes,
                                       planes + (done + 1) % 2 * Shape::kPlaneBytes, strips.pixels());
                        if (line + Shape::kStages < end) lines.copy(line + Shape::kStages, done % Shape::kStages);
                        commit_copies();
                        multiply(own_plane + done % 2 * Shape::kPlaneBytes, j, bands, sums);
                        ++done;
                    }
                    if (row > 0) write(shared + kResults + (row - 1) % 2 * Shape::kRowBytes, to, row - 1);
                    if (row >= 0) close(results + row % 2 * Shape::kRowBytes, j, sums);
                    clear(j, sums);
                }
            }
        }
        sync_block();
        write(shared + kResults + (rows - 1) % 2 * Shape::kRowBytes, to, rows - 1);
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        griddep_launch();
        griddep_wait();
        const KernelConv& conv = args.conv;
        const PixelGrid in = kBackward ? pixel_grid(conv.out, conv.y) : pixel_grid(conv.in, conv.x);
        const PixelGrid out = kBackward ? pixel_grid(conv.in, conv.x) : pixel_grid(conv.out, conv.y);
        BandStrips strips;
        strips.across = band_strips_across(out.size[2]);
        strips.images = Shape::kStrips / strips.across;
        strips.pitch = (strips.across + 1) * Shape::kOutputs;
        const u32 channel_tiles = ceil_div(int(conv.groups), Shape::kChannels),
                  row_tiles = ceil_div(out.size[1], kHeight);
        const u32 column_tiles = ceil_div(out.size[2], strips.across * Shape::kOutputs);
        const u32 line = block_index() / channel_tiles, column = line / row_tiles, image = column / column_tiles;
        strips.first_image = int(image) * strips.images;
        strips.first_column = int(column - image * column_tiles) * strips.across * Shape::kOutputs;
        const int top = int(line - column * row_tiles) * kHeight, left = out.size[1] - top;
        const int first_channel = int(block_index() - line * channel_tiles) * Shape::kChannels;
        const DepthwiseBand self = {args,          in, out, strips, first_channel, top, left < kHeight ? left : kHeight,
                                    shared_start()};
        self.walk();
    }
};

}  // namespace tilewise::cuda
