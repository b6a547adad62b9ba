// SPDX-License-Identifier: MIT
// Backward weight of depthwise convolution, channels last, filter known when compiled. A thread holds the sums of all taps
// for its channels and walks over patches of dy, each with the lines of x that it meets (depthwise_shape.hpp); a block then
// adds up what its threads have, tap row by tap row through shared memory. Blocks share the patches in split_k parts, whose
// sums meet in the workspace as [part][channel][tap]; reduce_depthwise adds them up in a fixed order.
//
// Floors on an H200, for each element of dy: taps fp32 multiply-adds at 29.7e12 /s (3x3: 0.3 ps, 7x7: 1.65 ps), and the bytes
// of one element of dy and of x each at 4.27e12 /s (bf16: 0.94 ps).
#pragma once
#include "depthwise_store.hpp"
#include "reduce.hpp"

namespace tilewise::cuda {

template <class Config>
struct DepthwiseWeight {
    using Dy = typename Config::A;
    using X = typename Config::B;
    using Shape = DepthwiseShape<Config>;
    using Rows = typename Shape::Rows;
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

    // A line of x against the line of dy that meets it through row r of the filter.
    static TILEWISE_DEVICE void add_line(const float (&x)[Columns::kInputs][V], const OutputLine& line,
                                         float (&sums)[kFilterColumns][V]) {
        float dy[kWidth][V];
        line.unpack(dy);
        TILEWISE_UNROLL
        for (int s = 0; s < kFilterColumns; ++s) {
            TILEWISE_UNROLL
            for (int b = 0; b < kWidth; ++b) {
                TILEWISE_UNROLL
                for (int v = 0; v < V; ++v) sums[s][v] += x[Columns::input(b, s)][v] * dy[b][v];
            }
        }
    }

    // One plane of x against the patch of dy.
    TILEWISE_DEVICE void add_plane(const typename X::Storage* first, int row, u32 inside,
                                   const OutputLine (&dy)[kHeight],
                                   float (&sums)[kFilterRows][kFilterColumns][V]) const {
        const Index pixel = in.pixel_stride * X::bytes, line_step = in.size[2] * pixel;
        const auto is_inside = [&](int i) { return u32(row + i) < u32(in.size[1]); };
        const char* at = reinterpret_cast<const char*>(first);
        Line next;
        next.load(at, pixel, is_inside(0) ? inside : 0u);
        TILEWISE_UNROLL
        for (int i = 0; i < Shape::kRows; ++i) {
            const Line line = next;
            at += line_step;
            if (i + 1 < Shape::kRows && Rows::is_used(i + 1)) next.load(at, pixel, is_inside(i + 1) ? inside : 0u);
            if (!Rows::is_used(i) || !is_inside(i)) continue;
            float x[Columns::kInputs][V];
            line.unpack(x);
            TILEWISE_UNROLL
            for (int h = 0; h < kHeight; ++h) {
                if (Rows::tap(i, h) >= 0) add_line(x, dy[h], sums[Rows::tap(i, h)]);
            }
        }
    }

    TILEWISE_DEVICE void add_patch(const typename Walk::Place& place, int channel, Sums& sums) const {
        const int top = Rows::first_output(place.row, 0), left = Columns::first_output(place.column, 0);
        const auto* dy_first = static_cast<const typename Dy::Storage*>(args.a.data) + place.image * out.image_stride +
                               channel +
                               ((Index(place.depth) * out.size[1] + top) * out.size[2] + left) * out.pixel_stride;
        const u32 dy_inside = OutputLine::mask(left, out.size[2]);
        OutputLine dy[kHeight];
        TILEWISE_UNROLL
        for (int h = 0; h < kHeight; ++h) {
            dy[h].load(dy_first + Index(h) * out.size[2] * out.pixel_stride, out.pixel_stride * Dy::bytes,
                       top + h < out.size[1] ? dy_inside : 0u);
        }
        const int row = Rows::origin(place.row, int(args.conv.pad[1]));
        const int column = Columns::origin(place.column, int(args.conv.pad[2]));
        const u32 inside = Line::mask(column, in.size[2]);
        const auto* first = static_cast<const typename X::Storage*>(args.b.data) + place.image * in.image_stride +
                            channel + (Index(row) * in.size[2] + column) * in.pixel_stride;
        TILEWISE_UNROLL
        for (int t = 0; t < Shape::kDepth; ++t) {
            const int at = place.depth * Config::ct_stride[0] + t * Config::ct_dilation[0] - int(args.conv.pad[0]);
            if (u32(at) >= u32(in.size[0])) continue;
            add_plane(first + Index(at) * in.size[1] * in.size[2] * in.pixel_stride, row, inside, dy, sums[t]);
        }
    }

    // A tap's sum over the block, of one channel.
    TILEWISE_DEVICE void write_sum(int part, Index channel, int tap, float sum) const {
        if (args.split_k > 1) {
            const Index total = args.conv.groups * Shape::kTaps;
            static_cast<float*>(args.workspace)[part * total + channel * Shape::kTaps + tap] = sum;
        } else {
            using Out = typename Config::Out;
            store<Out>(args, finish<Out>(args, sum, channel, 0, tap), channel, 0, tap);
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
            if (channel < args.conv.groups) write_sum(part, channel, first_tap + cell / Config::tile_n, sum);
        }
        sync_block();
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        griddep_launch();
        griddep_wait();
        const KernelConv& conv = args.conv;
        const DepthwiseWeight self = {args, pixel_grid(conv.in, conv.x), pixel_grid(conv.out, conv.y)};
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

// Adds up the parts' sums, each of which has one for every tap of every channel. Lanes of a warp take 8 neighbouring sums, and
// four of them take turns at the parts of each; the order is always the same. Blocks of whole warps, one warp for 8 sums.
inline constexpr int kSumsPerWarp = 8;
template <class Out>
TILEWISE_DEVICE void reduce_depthwise(const KernelArgs& args) {
    griddep_launch();
    griddep_wait();
    constexpr int kLanes = 32, kTurns = kLanes / kSumsPerWarp, kInFlight = 16;
    const Index total = args.batch * args.m * args.n;
    const Index first = (Index(block_index()) * block_threads() + thread_index()) / kLanes * kSumsPerWarp;
    const Index at = first + lane_index() % kSumsPerWarp;
    const float* sums = static_cast<const float*>(args.workspace);
    float sum = 0;
    for (int part = lane_index() / kSumsPerWarp; part < args.split_k; part += kTurns * kInFlight) {
        float some[kInFlight];
        TILEWISE_UNROLL
        for (int i = 0; i < kInFlight; ++i) {
            const int p = part + i * kTurns;
            some[i] = p < args.split_k && at < total ? sums[p * total + at] : 0.0f;
        }
        TILEWISE_UNROLL
        for (int i = 0; i < kInFlight; ++i) sum += some[i];
    }
    TILEWISE_UNROLL
    for (int mask = kSumsPerWarp; mask < kLanes; mask *= 2) sum += exchange(sum, mask);
    if (lane_index() >= kSumsPerWarp || at >= total) return;
    const Index line = quotient(at, args.n), batch = quotient(line, args.m), row = line - batch * args.m;
    const Index col = at - line * args.n;
    store<Out>(args, finish<Out>(args, sum, batch, row, col), batch, row, col);
}

}  // namespace tilewise::cuda
