// SPDX-License-Identifier: MIT
// Backward weight of depthwise convolution, channels last, filter known when compiled. A thread holds the sums of all taps
// for its channels and walks down strips of dy, along with the lines of x that they meet (RowWindow in depthwise_shape.hpp); a block then
// adds up what its threads have, tap row by tap row through shared memory. Blocks share the patches in split_k parts, whose
// sums meet in the workspace as [part][channel][tap]; reduce_depthwise adds them up in a fixed order.
//
// Floors on an H200, for each element of dy: taps fp32 multiply-adds at 29.7e12 /s (3x3: 0.3 ps, 7x7: 1.65 ps), and the bytes
// of one element of dy and of x each at 4.27e12 /s (bf16: 0.94 ps).
#pragma once
#include "depthwise_reduce.hpp"
#include "depthwise_shape.hpp"

namespace tilewise::gpu {

template <class Config>
struct DepthwiseStripsWgrad {
    using Dy = typename Config::A;
    using X = typename Config::B;
    using Shape = DepthwiseShape<Config>;
    using Rows = typename Shape::Window;
    using Columns = typename Shape::Columns;
    using Walk = PatchWalk<Shape>;
    static constexpr int V = Shape::kVector, kHeight = Shape::kHeight, kWidth = Shape::kWidth;
    static constexpr int kFilterRows = Shape::kFilterRows, kFilterColumns = Shape::kFilterColumns;
    using Line = InputLine<X, V, Columns>;
    using OutputLine = InputLine<Dy, V, TapLine<false, 1, 1, 1, kWidth>>;
    static constexpr int kSumBytes = Shape::kThreads * V * kFilterColumns * 4;
    static_assert(kSumBytes <= Config::shared_bytes);
    using Sums = float[Shape::kDepth][kFilterRows][kFilterColumns][V];

    const KernelArgs& args;
    PixelGrid in, out;

    // Rows of dy that lines of x still meet, as fp32 where there are registers for it.
    struct Window {
        static constexpr int kRows = Rows::kWindow, kMostFloats = 48;
        static constexpr bool kHolds = kRows * kWidth * V <= kMostFloats;
        OutputLine lines[kHolds ? 1 : kRows];
        float values[kHolds ? kRows : 1][kWidth][V];

        TILEWISE_DEVICE void clear() {
            OutputLine zero;
            zero.load(nullptr, 0, 0u);
            TILEWISE_UNROLL
            for (int place = 0; place < kRows; ++place) put(place, zero);
        }
        TILEWISE_DEVICE void put(int place, const OutputLine& line) {
            if constexpr (kHolds) {
                line.unpack(values[place]);
            } else {
                lines[place] = line;
            }
        }
        TILEWISE_DEVICE void get(int place, float (&x)[kWidth][V]) const {
            if constexpr (kHolds) {
                TILEWISE_UNROLL
                for (int b = 0; b < kWidth; ++b) {
                    TILEWISE_UNROLL
                    for (int v = 0; v < V; ++v) x[b][v] = values[place][b][v];
                }
            } else {
                lines[place].unpack(x);
            }
        }
    };

    // Line i of plane z of x against every row of dy that it meets.
    static TILEWISE_DEVICE void add_line(const Line& line, int i, const Window& window,
                                         float (&sums)[kFilterRows][kFilterColumns][V]) {
        float x[Columns::kInputs][V];
        line.unpack(x);
        TILEWISE_UNROLL
        for (int o = 0; o < Window::kRows; ++o) {
            const int row = Rows::first_row(i) + o, r = Rows::tap(i, row);
            if (r < 0) continue;
            float dy[kWidth][V];
            window.get(Rows::place(row), dy);
            TILEWISE_UNROLL
            for (int s = 0; s < kFilterColumns; ++s) {
                TILEWISE_UNROLL
                for (int b = 0; b < kWidth; ++b) {
                    TILEWISE_UNROLL
                    for (int v = 0; v < V; ++v) sums[r][s][v] += x[Columns::input(b, s)][v] * dy[b][v];
                }
            }
        }
    }

    // A strip of dy: lines of x come one after the other, of each all planes, and rows of dy when their first line does; the
    // next ones are always under way.
    TILEWISE_DEVICE void add_patch(const typename Walk::Place& place, int channel, Sums& sums) const {
        constexpr int lines = Rows::lines(kHeight), turns = ceil_div(lines, Rows::kTurn), planes = Shape::kDepth;
        constexpr int stride = Config::ct_stride[1], plane_gap = Shape::dilation(0);
        const int dy_top = place.row * kHeight, dy_left = place.column * kWidth;
        const Index dy_pixel = out.pixel_stride * Dy::bytes, dy_step = out.size[2] * dy_pixel;
        const char* dy_at = reinterpret_cast<const char*>(static_cast<const typename Dy::Storage*>(args.a.data) +
                                                          place.image * out.image_stride + channel) +
                            (Index(place.depth) * out.size[1] + dy_top) * dy_step + dy_left * dy_pixel;
        const u32 dy_inside = OutputLine::mask(dy_left, out.size[2]);
        const auto dy_mask = [&](int row) { return row < kHeight && dy_top + row < out.size[1] ? dy_inside : 0u; };

        const int top = Shape::Rows::origin(place.row, int(args.conv.pad[1]));
        const int left = Columns::origin(place.column, int(args.conv.pad[2]));
        const Index pixel = in.pixel_stride * X::bytes, line_step = in.size[2] * pixel;
        const char* at = reinterpret_cast<const char*>(static_cast<const typename X::Storage*>(args.b.data) +
                                                       place.image * in.image_stride + channel) +
                         top * line_step + left * pixel;
        const u32 inside = Line::mask(left, in.size[2]);
        const int first_plane = place.depth * Config::ct_stride[0] - int(args.conv.pad[0]);
        const Index plane_step = in.size[1] * line_step;
        const auto is_inside = [&](int i, int z) {
            return u32(top + i) < u32(in.size[1]) && i < lines &&
                   (planes == 1 || u32(first_plane + z * plane_gap) < u32(in.size[0]));
        };
        const auto plane = [&](int z) { return planes == 1 ? 0 : (first_plane + z * plane_gap) * plane_step; };
        Window window;
        window.clear();
        Line next[planes];
        TILEWISE_UNROLL
        for (int z = 0; z < planes; ++z) next[z].load(at + plane(z), pixel, is_inside(0, z) ? inside : 0u);
        OutputLine next_dy;
        next_dy.load(dy_at, dy_pixel, dy_mask(0));
        TILEWISE_ROLLED
        for (int turn = 0; turn < turns; ++turn) {
            TILEWISE_UNROLL
            for (int u = 0; u < Rows::kTurn; ++u) {
                const int i = turn * Rows::kTurn + u;
                if (u % stride == 0) {
                    window.put(Rows::place(u / stride), next_dy);
                    dy_at += dy_step;
                    next_dy.load(dy_at, dy_pixel, dy_mask(i / stride + 1));
                }
                at += line_step;
                TILEWISE_UNROLL
                for (int z = 0; z < planes; ++z) {
                    const Line line = next[z];
                    if (Rows::is_used(u + 1)) next[z].load(at + plane(z), pixel, is_inside(i + 1, z) ? inside : 0u);
                    if (Rows::is_used(u) && is_inside(i, z)) add_line(line, u, window, sums[z]);
                }
            }
        }
    }

    // Adds up the sums of a row of taps over the threads of each channel: [patch of the round][tap][channel].
    TILEWISE_DEVICE void reduce_row(const float (&sums)[kFilterColumns][V], int part, int first_channel,
                                    int first_tap) const {
        const SharedAddress shared = shared_start();
        const int cells = kFilterColumns * Config::tile_n;
        TILEWISE_UNROLL
        for (int s = 0; s < kFilterColumns; ++s) {
            const int cell = Shape::patch_in_round() * cells + s * Config::tile_n + Shape::lane_across() * V;
            store_floats(shared + cell * 4, sums[s]);
        }
        sync_block();
        for (int cell = thread_index(); cell < cells; cell += Shape::kThreads) {
            float sum = 0;
            TILEWISE_UNROLL
            for (int i = 0; i < Shape::kRound; ++i) sum += load_shared_float(shared + (i * cells + cell) * 4);
            const Index channel = first_channel + cell % Config::tile_n;
            if (channel < args.conv.groups)
                write_weight_sum<Config, Shape::kTaps>(args, part, channel, first_tap + cell / Config::tile_n, sum);
        }
        sync_block();
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        griddep_launch();
        griddep_wait();
        const KernelConv& conv = args.conv;
        const DepthwiseStripsWgrad self = {args, pixel_grid(conv.in, conv.x), pixel_grid(conv.out, conv.y)};
        const u32 channel_tiles = ceil_div(int(conv.groups), Config::tile_n);
        const u32 part = block_index() / channel_tiles;
        const int first_channel = int(block_index() - part * channel_tiles) * Config::tile_n;
        const int channel = first_channel + Shape::lane_across() * V;
        const Walk walk(conv, self.out);
        const u32 begin = u32(u64(walk.total) * part / u32(args.split_k));
        const u32 end = u32(u64(walk.total) * (part + 1) / u32(args.split_k));
        Sums sums = {};
        if (channel < conv.groups) {
            TILEWISE_ROLLED
            for (u32 patch = begin + Shape::patch_in_round(); patch < end; patch += Shape::kRound)
                self.add_patch(walk.locate(patch), channel, sums);
        }
        TILEWISE_UNROLL
        for (int row = 0; row < Shape::kDepth * kFilterRows; ++row) {
            self.reduce_row(sums[row / kFilterRows][row % kFilterRows], int(part), first_channel, row * kFilterColumns);
        }
    }
};

}  // namespace tilewise::gpu
