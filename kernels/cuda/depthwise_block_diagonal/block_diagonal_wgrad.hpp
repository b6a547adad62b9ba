// SPDX-License-Identifier: MIT
// Backward weight of depthwise convolution by diagonals: stride 1 and 2, 16-bit types, channels last, two and three dimensions.
// For one tap, the 8 x 8 matrix of all products of 8 channels of x and of dy, added up over pixels, has on its diagonal the sums
// of that tap's weights. One mma.sync adds up 16 pixels for two neighbouring taps; ldmatrix turns 8 pixels x 8 channels around on
// the way to registers and finds the pixels of a tap at a fixed distance from those of the first. A block walks down the rows of
// its frames (block_diagonal_shape.hpp) with the lines of x that they meet; rows of dy that later lines meet stay in registers. Blocks
// share all rows evenly in split_k parts, whose sums meet in the workspace as [part][channel][tap]; each takes one plane of taps.
//
// Floors on an H200, for each element of dy: bytes of one element of dy and of x at 4.27e12 /s (0.94 ps); 6 products for 128
// elements at 132 x 0.6 / clock (3x3: 0.3 ps): memory.
#pragma once
#include "../depthwise_cluster.hpp"
#include "block_diagonal_shape.hpp"

namespace tilewise::cuda::depthwise_block_diagonal {

template <class Config>
struct BlockDiagonalWgrad {
    using T = typename Config::A;
    using Shape = BlockDiagonalShape<Config>;
    using Block = BlockDiagonalTile<Shape>;
    using Window = typename Shape::Window;
    using Xs = BlockDiagonalLines<Shape, Shape::kMostSlots, 1>;
    using Dys = BlockDiagonalLines<Shape, Shape::kMostOutputs, 1>;
    static_assert(kSame<T, typename Config::B> && T::bytes == Shape::kBytes);
    static constexpr int kStageBytes = Xs::kBytes + Dys::kBytes, kPlaneTaps = Shape::kRows * Shape::kColumns;
    static_assert(Shape::kStages * kStageBytes <= Config::shared_bytes);
    static_assert(Shape::kPixelWarps * kPlaneTaps * Shape::kChannels * 4 <= Config::shared_bytes);

    const KernelArgs& args;
    FrameGrid in, out;
    const DepthwiseTilesArgs& launch;
    int first_channel, part, z;
    SharedAddress shared;

    using Sums = float[Shape::kRows][Shape::kGroups][Shape::kProducts][4];
    using Rows = u32[Window::kWindow][Shape::kGroups][2];  // of dy

    // Line u of a turn against the rows of dy that it meets. `pair` and `single` are the lane's pixels.
    static TILEWISE_DEVICE void multiply(SharedAddress pair, SharedAddress single, int u, const Rows& dys, Sums& sums) {
        TILEWISE_UNROLL
        for (int g = 0; g < Shape::kGroups; ++g) {
            TILEWISE_UNROLL
            for (int p = 0; p < Shape::kPairs; ++p) {
                u32 x[4];
                load_matrices<true>(pair + Block::to_even_tap(p * 2) * Shape::kPitch + g * 16, x);
                add_products(x, u, g, p, dys, sums);
            }
        }
        if constexpr (Shape::kSingles > 0) {
            TILEWISE_UNROLL
            for (int g = 0; g < Shape::kGroups; g += 2) {
                u32 x[4];  // two groups of channels
                load_matrices<true>(single + Block::to_even_tap(Shape::kColumns - 1) * Shape::kPitch + g * 16, x);
                TILEWISE_UNROLL
                for (int e = 0; e < 2; ++e) add_products(x, u, g + e, Shape::kPairs, dys, sums);
            }
        }
    }
    static TILEWISE_DEVICE void add_products(const u32 (&x)[4], int u, int g, int product, const Rows& dys,
                                             Sums& sums) {
        TILEWISE_UNROLL
        for (int o = 0; o < Window::kWindow; ++o) {
            const int row = Window::first_row(u) + o, r = Window::tap(u, row);
            if (r < 0) continue;
            const u32(&dy)[2] = dys[Window::place(row)][g];
            multiply_add<T, T>(sums[r][g][product], x, dy[0], dy[1]);
        }
    }
    static TILEWISE_DEVICE void load_row(SharedAddress from, u32 (&row)[Shape::kGroups][2]) {
        TILEWISE_UNROLL
        for (int g = 0; g < Shape::kGroups; g += 2) {
            u32 dy[4];
            load_matrices<true>(from + g * 16, dy);
            row[g][0] = dy[0], row[g][1] = dy[1], row[g + 1][0] = dy[2], row[g + 1][1] = dy[3];
        }
    }

    // Rows [top, top + rows) of the block's frames.
    TILEWISE_DEVICE void walk(const Block& block, int top, int rows, Sums& sums) const {
        const KernelConv& conv = args.conv;
        const int first_line = top * Shape::kStride - int(conv.pad[1]);
        const int steps = (rows - 1) * Shape::kStride + Shape::kRows, channels = int(conv.groups);
        Xs xs(args.b.data, in, block, true, first_line, block.first_column * Shape::kStride - int(conv.pad[2]),
              int(conv.pad[0]) - z, first_channel, channels);
        Dys dys(args.a.data, out, block, false, top, block.first_column, 0, first_channel, channels);
        const auto has_line = [&](int step) { return step < steps && u32(first_line + step) < u32(in.height); };
        const auto copy = [&](int step, SharedAddress stage) {
            xs.copy(shared + stage, has_line(step));
            if (step % Shape::kStride == 0) dys.copy(shared + stage + Xs::kBytes, step / Shape::kStride < rows);
            commit_copies();
        };
        wait_copies<0>();
        sync_block();  // the lines of the rows before have been read
        griddep_wait();
        TILEWISE_ROLLED
        for (int stage = 0; stage < Shape::kStages - 1; ++stage) copy(stage, stage * kStageBytes);
        const int lane = lane_index(), first = Shape::pixel_warp() * Shape::kTile;
        const int own_bytes = Shape::channel_warp() * Shape::kOwn * Shape::kBytes, odd = lane / 8 % 2;
        // Matrices of x: the first 8 pixels of both taps (or groups of channels), then the others.
        const SharedAddress x = shared + block.slot(first + lane / 16 * 8 + lane % 8) * Shape::kPitch + own_bytes;
        SharedAddress pair = x + odd * block.to_next_tap() * Shape::kPitch, single = x + odd * 16;
        // dy gives both halves of the pixels of a group of channels, then of the next.
        SharedAddress dy = shared + Xs::kBytes + (first + lane % 16) * Shape::kPitch + own_bytes + lane / 16 * 16;
        hide(pair), hide(single), hide(dy);
        Rows window = {};
        SharedAddress stage = 0, last = (Shape::kStages - 1) * kStageBytes;  // of the line, of the one before
        TILEWISE_ROLLED
        for (int turn = 0; turn < steps; turn += Window::kTurn) {
            TILEWISE_UNROLL
            for (int u = 0; u < Window::kTurn; ++u) {
                const int step = turn + u;
                if (step >= steps) return;  // all threads
                wait_copies<Shape::kStages - 2>();
                sync_block();
                copy(step + Shape::kStages - 1, last);
                if (u % Shape::kStride == 0) load_row(dy + stage, window[Window::place(u / Shape::kStride)]);
                multiply(pair + stage, single + stage, u, window, sums);
                last = stage, stage = next_stage<kStageBytes, Shape::kStages>(stage);
            }
        }
    }

    // The diagonals of a warp's sums, as [warp][tap of the plane][channel].
    TILEWISE_DEVICE void put_sums(const Sums& sums) const {
        const int lane = lane_index(), n = lane / 4;
        if (n / 2 != lane % 4) return;
        const SharedAddress to =
            shared +
            (Shape::pixel_warp() * kPlaneTaps * Shape::kChannels + Shape::channel_warp() * Shape::kOwn + n) * 4;
        TILEWISE_UNROLL
        for (int tap = 0; tap < kPlaneTaps; ++tap) {
            const int r = tap / Shape::kColumns, s = tap % Shape::kColumns;
            TILEWISE_UNROLL
            for (int g = 0; g < Shape::kGroups; ++g) {
                // The second tap of a pair lies in the lower half; so do the sums of every other group without a pair.
                const int half = s / 2 < Shape::kPairs ? s % 2 : g % 2;
                const float(&own)[4] = sums[r][g][s / 2];
                store_shared_float(to + (tap * Shape::kChannels + g * Shape::kGroup) * 4,
                                   n % 2 == 0 ? own[half * 2] : own[half * 2 + 1]);
            }
        }
    }
    TILEWISE_DEVICE void write_sums() const {
        constexpr int cells = kPlaneTaps * Shape::kChannels;
        if constexpr (Config::cluster_k) {
            add_up_cluster<cells, Shape::kPixelWarps, Shape::kThreads>(
                shared, args.split_k, [&](int cell, float sum) { write_cell(cell, sum); });
            return;
        }
        sync_block();
        TILEWISE_ROLLED
        for (int cell = thread_index(); cell < cells; cell += Shape::kThreads) {
            float sum = 0;
            TILEWISE_UNROLL
            for (int w = 0; w < Shape::kPixelWarps; ++w) sum += load_shared_float(shared + (w * cells + cell) * 4);
            write_cell(cell, sum);
        }
    }
    TILEWISE_DEVICE void write_cell(int cell, float sum) const {
        const Index channel = first_channel + cell % Shape::kChannels;
        if (channel < args.conv.groups)
            write_weight_sum<Config, Shape::kTaps>(args, part, channel, z * kPlaneTaps + cell / Shape::kChannels, sum);
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        griddep_launch();
        const KernelConv& conv = args.conv;
        const FrameGrid in = frame_grid(conv.in, conv.x), out = frame_grid(conv.out, conv.y);
        const DepthwiseTilesArgs& launch = TILEWISE_FAMILY_ARGS(DepthwiseTilesArgs, args);
        const DepthwisePart own = depthwise_part<Config, Shape::kDepth>(launch);
        const BlockDiagonalWgrad self = {
            args, in, out, launch, own.channel_tile * Shape::kChannels, own.part, own.plane, shared_start()};
        DepthwiseRows left(launch, own.part);
        Sums sums = {};
        TILEWISE_ROLLED
        while (left.at < left.end) {
            const DepthwiseRows::Run run = left.next(launch);
            self.walk(Block(launch, run.tile), run.top, run.rows, sums);
        }
        griddep_wait();  // also where there were no rows: what was launched before may still read the workspace
        wait_copies<0>();
        sync_block();
        self.put_sums(sums);
        self.write_sums();
    }
};

}  // namespace tilewise::cuda::depthwise_block_diagonal
