// SPDX-License-Identifier: MIT
// Backward weight of depthwise convolution on matrix units, stride 1, 16-bit types, channels last. For one channel and one row of
// taps r, the 16 x 8 matrix of all products of 16 inputs and 8 outputs of a strip, added up over strips and rows, has on its
// diagonals the sums of the taps of that row: tap s is the sum of the elements (i + s, i). So one mma.sync adds up 16 strips
// (toeplitz_shape.hpp), and the diagonals are added up once at the end. A block walks down strip after strip, line by line, as in
// toeplitz_conv.hpp; the rows of dy that later lines of x meet stay in registers. Blocks share the strips in split_k parts, whose
// sums meet in the workspace as [part][channel][tap].
//
// Floors on an H200, for each element of dy: one mma.sync for 128 elements and a row of taps, at 132 x 0.6 / clock (3x3: 0.05 ps,
// 7x7: 0.4 ps); bytes of one element of dy and of x at 4.27e12 /s (0.94 ps): memory.
#pragma once
#include "../../gpu/depthwise_store.hpp"
#include "../depthwise_cluster.hpp"
#include "toeplitz_shape.hpp"

namespace tilewise::cuda::depthwise_toeplitz {

template <class Config>
struct ToeplitzWgrad {
    using T = typename Config::A;
    using Shape = ToeplitzShape;
    static constexpr int kRows = Config::ct_filter[1], kColumns = Config::ct_filter[2], kTaps = kRows * kColumns;
    static_assert(kSame<T, typename Config::B> && T::bytes == Shape::kBytes);
    static_assert(Config::threads == Shape::kThreads && Config::tile_n == Shape::kChannels);
    static_assert(Config::ct_filter[0] == 1 && kColumns + Shape::kOutputs - 1 <= Shape::kInputs);
    static_assert(Config::ct_stride[1] == 1 && Config::ct_stride[2] == 1);
    static_assert(Config::ct_dilation[1] <= 1 && Config::ct_dilation[2] <= 1);
    static constexpr int kStages = 4;  // lines of x and of dy under way
    // At the end: sums of all products of every channel and row of taps, then those of taps.
    // Lanes take neighbouring taps, whose diagonals begin a row, or a matrix, further: 9 banks, where there is room for that.
    static constexpr int kBanks = 32, kRowWords = Shape::kOutputs + 1,
                         kMatrixWords = (Shape::kInputs - 1) * kRowWords + Shape::kOutputs;
    static constexpr int cells_at(int matrix_words) { return Shape::kChannels * kRows * matrix_words * 4; }
    static constexpr int kApartWords =
        kMatrixWords + ((kColumns * kRowWords - kMatrixWords) % kBanks + kBanks) % kBanks;
    static constexpr bool kHasRoom = cells_at(kApartWords) + kTaps * Shape::kChannels * 4 <= Config::shared_bytes;
    static constexpr int kMatrixBytes = (kHasRoom ? kApartWords : kMatrixWords) * 4;
    static constexpr int kCells = cells_at(kMatrixBytes / 4);
    static_assert(kCells + kTaps * Shape::kChannels * 4 <= Config::shared_bytes);
    using Xs = ToeplitzLines<true>;
    using Dys = ToeplitzLines<false>;
    static constexpr int kStageBytes = Xs::kRawBytes + Dys::kRawBytes, kPlanes = kStages * kStageBytes;
    static constexpr int kPlaneBytes = Xs::kPlaneBytes + Dys::kPlaneBytes;
    static_assert(kPlanes + 2 * kPlaneBytes <= Config::shared_bytes);

    const KernelArgs& args;
    PixelGrid in, out;
    int first_channel, part;
    SharedAddress shared;

    using Sums = float[Shape::kOwn][kRows][4];
    using Window = u32[Shape::kOwn][kRows][2];  // rows of dy

    // Pixels of x past the last are zeros; strips that there are not lie there.
    TILEWISE_DEVICE void clear_margins() const {
        constexpr int margins = 2 * Shape::kChannels;  // of both planes
        if (thread_index() < margins) {
            const int plane = thread_index() / Shape::kChannels, channel = thread_index() % Shape::kChannels;
            store_shared<16>(
                shared + kPlanes + plane * kPlaneBytes + channel * Xs::kPitch + Xs::kPixels * Shape::kBytes,
                zero_packet<16>());
        }
    }
    static TILEWISE_DEVICE int pixel(const ToeplitzStrips& strips, int strip) {
        return strip < strips.images * strips.across ? strips.pixel(strip) : Shape::kMostPixels;
    }

    // A line of x against the rows of dy that it meets, the last of which is row j of a turn.
    static TILEWISE_DEVICE void multiply(const u32 (&x)[Shape::kOwn][4], int j, const Window& window, Sums& sums) {
        TILEWISE_UNROLL
        for (int c = 0; c < Shape::kOwn; ++c) {
            TILEWISE_UNROLL
            for (int r = 0; r < kRows; ++r) {
                const u32(&meets)[2] = window[c][(j - r + kRows) % kRows];
                multiply_add<T, T>(sums[c][r], x[c], meets[0], meets[1]);
            }
        }
    }

    // Rows [top, top + rows) of dy of a block's strips.
    TILEWISE_DEVICE void walk(const ToeplitzStrips& strips, int top, int rows, Sums& sums) const {
        const KernelConv& conv = args.conv;
        const int first_line = top - int(conv.pad[1]);
        Xs xs(args.b.data, conv.x, in.size[2], first_line, int(conv.pad[2]), conv, strips, first_channel);
        Dys dys(args.a.data, conv.y, out.size[2], top, 0, conv, strips, first_channel);
        const int steps = least(rows + kRows - 1, in.size[1] - first_line);  // below are zeros
        const auto has_line = [&](int step) { return u32(first_line + step) < u32(in.size[1]); };
        const auto copy = [&](int step, SharedAddress stage) {
            xs.copy(shared + stage, step < steps && has_line(step));
            dys.copy(shared + stage + Xs::kRawBytes, step < rows);
            commit_copies();
        };
        wait_copies<0>();
        sync_block();  // the strips before have been read
        clear_raw<kPlanes>(shared);
        sync_block();
        griddep_wait();
        TILEWISE_ROLLED
        for (int stage = 0; stage < kStages; ++stage) copy(stage, stage * kStageBytes);
        const int own = thread_index() / 32 * Shape::kOwn, lane = lane_index(), quarter = lane / 8;
        // Strips past the last have no pixels to the right of their 8 either.
        const int x_strip = (quarter >> 1) * 8 + lane % 8,
                  right = x_strip < strips.images * strips.across ? quarter & 1 : 0;
        SharedAddress line =
            shared + kPlanes + own * Xs::kPitch + (pixel(strips, x_strip) + right * Shape::kOutputs) * Shape::kBytes;
        SharedAddress row = shared + kPlanes + Xs::kPlaneBytes + (own + (quarter >> 1)) * Dys::kPitch +
                            ((quarter & 1) * 8 + lane % 8) * Shape::kOutputs * Shape::kBytes;
        hide(line), hide(row);
        Window window = {};
        wait_copies<kStages - 1>();
        sync_block();
        xs.turn(shared, shared + kPlanes);
        dys.turn(shared + Xs::kRawBytes, shared + kPlanes + Xs::kPlaneBytes);
        SharedAddress stage = 0, plane = 0;
        TILEWISE_ROLLED
        for (int first = 0; first < steps; first += kRows) {
            TILEWISE_UNROLL
            for (int j = 0; j < kRows; ++j) {
                const int step = first + j;
                if (step >= steps) return;  // all threads
                wait_copies<kStages - 2>();
                sync_block();
                // What is asked for first is there when the products begin; what they leave time for comes after them.
                u32 dy[4], x[Shape::kOwn][4];  // two channels
                load_matrices<true>(row + plane, dy);
                TILEWISE_UNROLL
                for (int c = 0; c < Shape::kOwn; ++c) load_matrices<true>(line + plane + c * Xs::kPitch, x[c]);
                const SharedAddress next = next_raw<kStages, kStageBytes>(stage), next_plane = kPlaneBytes - plane;
                u32 words[4];
                xs.fetch(shared + next, 0, words);
                copy(step + kStages, stage);
                TILEWISE_UNROLL
                for (int c = 0; c < Shape::kOwn; ++c) window[c][j][0] = dy[c * 2], window[c][j][1] = dy[c * 2 + 1];
                if (has_line(step)) multiply(x, j, window, sums);
                xs.put(shared + kPlanes + next_plane, 0, words);
                xs.turn(shared + next, shared + kPlanes + next_plane, 1);
                dys.turn(shared + next + Xs::kRawBytes, shared + kPlanes + next_plane + Xs::kPlaneBytes);
                stage = next, plane = next_plane;
            }
        }
    }

    // Adds up the diagonals of a warp's sums: lanes take turns at its taps. One rolled loop: the code is fetched once for every launch.
    TILEWISE_DEVICE void write_sums(const Sums& sums) const {
        const int lane = lane_index(), own = thread_index() / 32 * Shape::kOwn;
        const SharedAddress matrices = shared + own * kRows * kMatrixBytes;
        TILEWISE_UNROLL
        for (int i = 0; i < Shape::kOwn * kRows * 2; ++i) {
            const float(&sum)[4] = sums[i / 2 / kRows][i / 2 % kRows];
            const int row = lane / 4 + i % 2 * 8, column = lane % 4 * 2;
            const SharedAddress to = matrices + i / 2 * kMatrixBytes + (row * kRowWords + column) * 4;
            store_shared_float(to, sum[i % 2 * 2]);
            store_shared_float(to + 4, sum[i % 2 * 2 + 1]);
        }
        sync_warp();
        TILEWISE_ROLLED
        for (int i = lane; i < Shape::kOwn * kTaps; i += 32) {
            const int c = i / kTaps, tap = i - c * kTaps, r = tap / kColumns, s = tap - r * kColumns;
            const SharedAddress diagonal = matrices + (c * kRows + r) * kMatrixBytes + s * kRowWords * 4;
            float sum = 0;
            TILEWISE_UNROLL
            for (int k = 0; k < Shape::kOutputs; ++k) sum += load_shared_float(diagonal + k * (kRowWords + 1) * 4);
            if constexpr (Config::cluster_k) {
                store_shared_float(shared + kCells + (tap * Shape::kChannels + own + c) * 4, sum);
            } else {
                const Index channel = first_channel + own + c;
                if (channel < args.conv.groups) write_weight_sum<Config, kTaps>(args, part, channel, tap, sum);
            }
        }
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        griddep_launch();
        const KernelConv& conv = args.conv;
        const PixelGrid in = pixel_grid(conv.in, conv.x), out = pixel_grid(conv.out, conv.y);
        const DepthwiseTilesArgs& launch = TILEWISE_FAMILY_ARGS(DepthwiseTilesArgs, args);
        const DepthwisePart block = depthwise_part<Config, 1>(launch);
        const int part = block.part, first_channel = block.channel_tile * Shape::kChannels;
        const ToeplitzWgrad self = {args, in, out, first_channel, part, shared_start()};
        self.clear_margins();
        Sums sums = {};
        DepthwiseRows left(launch, part);
        TILEWISE_ROLLED
        while (left.at < left.end) {
            const DepthwiseRows::Run run = left.next(launch);
            self.walk(ToeplitzStrips(launch, run.tile), run.top, run.rows, sums);
        }
        griddep_wait();  // also where there were no rows: what was launched before may still read the workspace
        wait_copies<0>();
        sync_block();
        self.write_sums(sums);
        if constexpr (Config::cluster_k) {
            add_up_cluster<kTaps * Shape::kChannels, 1, Shape::kThreads>(
                self.shared + kCells, args.split_k, [&](int cell, float sum) {
                    const Index channel = first_channel + cell % Shape::kChannels;
                    if (channel < conv.groups)
                        write_weight_sum<Config, kTaps>(args, part, channel, cell / Shape::kChannels, sum);
                });
        }
    }
};

}  // namespace tilewise::cuda::depthwise_toeplitz
