// SPDX-License-Identifier: MIT
// Depthwise convolution, channels last, one output channel per group: what a generated stub includes. With a filter, stride
// and dilation known when compiled, forward and backward data are here and backward weight is in depthwise_strips_wgrad.hpp; what
// is known at launch only is in depthwise_any.hpp.
//
// A block of wave_m warps takes tile_n channels of tile_m outputs. Its weights lie in shared memory as fp32 [tap][channel];
// a thread walks down its patch one line of inputs at a time, the next line under way, converts each element once and adds
// it to every output that it meets. Results leave from registers as soon as their last line has come.
//
// Floors on an H200, for each output element: taps fp32 multiply-adds at 29.7e12 /s (3x3: 0.3 ps, 7x7: 1.65 ps) and the
// bytes of one input and one output at 4.27e12 /s (bf16: 0.94 ps): 3x3 is bound by memory, 7x7 by arithmetic.
#pragma once
#include "depthwise_store.hpp"
#include "depthwise_strips_wgrad.hpp"

namespace tilewise::gpu {

// Weights of the block's channels as fp32 [tap][channel]; those past the last channel are 0.
template <class T, class Shape, int tile_n>
TILEWISE_DEVICE void stage_weights(const KernelArgs& args, int first_channel, SharedAddress to) {
    const auto* from = static_cast<const typename T::Storage*>(args.b.data) + Index(first_channel) * Shape::kTaps;
    const int channels = least(int(args.conv.groups) - first_channel, tile_n);
    for (int i = thread_index(); i < tile_n * Shape::kTaps; i += Shape::kThreads) {
        const int channel = i / Shape::kTaps, tap = i - channel * Shape::kTaps;
        store_shared_float(to + (tap * tile_n + channel) * 4, channel < channels ? T::to_float(from[i]) : 0.0f);
    }
}

template <class Config>
struct DepthwiseStrips {
    using In = typename Config::A;
    using Weight = typename Config::B;
    using Shape = DepthwiseShape<Config>;
    using Rows = typename Shape::Rows;
    using Columns = typename Shape::Columns;
    using Window = typename Shape::Window;
    using Walk = PatchWalk<Shape>;
    using Store = DepthwiseStore<Config, Shape>;
    using Storage = typename In::Storage;
    static constexpr int V = Shape::kVector, kHeight = Shape::kHeight, kWidth = Shape::kWidth;
    using Line = InputLine<In, V, Columns>;
    static constexpr int kWeightBytes = Shape::kTaps * Config::tile_n * 4;
    static_assert(kWeightBytes + Store::kSlotBytes * Shape::kThreads <= Config::shared_bytes);
    // Few weights stay in registers, many are read as they are used.
    static constexpr int kMostHeld = 20;
    static constexpr bool kHolds = Shape::kTaps * V <= kMostHeld;

    const KernelArgs& args;
    PixelGrid in;
    Store store;

    // Weights of the thread's channels, in registers or not.
    struct Weights {
        SharedAddress at;
        float held[kHolds ? Shape::kTaps : 1][V];

        explicit TILEWISE_DEVICE Weights(SharedAddress first) : at(first) {
            if constexpr (kHolds) {
                TILEWISE_UNROLL
                for (int t = 0; t < Shape::kTaps; ++t) load_floats(at + t * Config::tile_n * 4, held[t]);
            }
        }
        TILEWISE_DEVICE void read(int tap, float (&w)[V]) const {
            if constexpr (kHolds) {
                TILEWISE_UNROLL
                for (int v = 0; v < V; ++v) w[v] = held[tap][v];
            } else {
                load_floats(at + tap * Config::tile_n * 4, w);
            }
        }
    };
    using Sums = float[Window::kWindow][kWidth][V];

    // Adds line i of plane z to the sums of every row that it meets.
    static TILEWISE_DEVICE void add_line(const Line& line, int i, int z, const Weights& weights, Sums& sums) {
        float x[Columns::kInputs][V];
        line.unpack(x);
        TILEWISE_UNROLL
        for (int o = 0; o < Window::kWindow; ++o) {
            const int row = Window::first_row(i) + o, r = Window::tap(i, row);
            if (r < 0) continue;
            TILEWISE_UNROLL
            for (int s = 0; s < Shape::kFilterColumns; ++s) {
                float w[V];
                weights.read((z * Shape::kFilterRows + r) * Shape::kFilterColumns + s, w);
                TILEWISE_UNROLL
                for (int b = 0; b < kWidth; ++b) {
                    if (Columns::input(b, s) < 0) continue;
                    TILEWISE_UNROLL
                    for (int v = 0; v < V; ++v) sums[Window::place(row)][b][v] += x[Columns::input(b, s)][v] * w[v];
                }
            }
        }
    }
    static TILEWISE_DEVICE void open_rows(int i, Sums& sums) {
        TILEWISE_UNROLL
        for (int o = 0; o < Window::kWindow; ++o) {
            const int row = Window::first_row(i) + o;
            if (!Window::opens(i, row)) continue;
            TILEWISE_UNROLL
            for (int b = 0; b < kWidth; ++b) {
                TILEWISE_UNROLL
                for (int v = 0; v < V; ++v) sums[Window::place(row)][b][v] = 0.0f;
            }
        }
    }

    // The plane of inputs that plane `depth` of the outputs meets through tap t, or -1.
    TILEWISE_DEVICE int input_plane(int depth, int t) const {
        const int stride = Config::ct_stride[0], shift = t * Shape::dilation(0), pad = int(args.conv.pad[0]);
        const int at = Shape::kBackward ? (depth + pad - shift) / stride : depth * stride + shift - pad;
        const bool meets = !Shape::kBackward || (depth + pad - shift >= 0 && (depth + pad - shift) % stride == 0);
        return meets && u32(at) < u32(in.size[0]) ? at : -1;
    }

    // A strip: lines of inputs come one after the other, of each all planes; the next ones are always under way.
    template <bool simple>
    TILEWISE_DEVICE void run_patch(const typename Walk::Place& place, int channel, const Weights& weights) const {
        constexpr int lines = Window::lines(kHeight), turns = ceil_div(lines, Window::kTurn), planes = Shape::kDepth;
        const int top = Rows::origin(place.row, int(args.conv.pad[1]));
        const int column = Columns::origin(place.column, int(args.conv.pad[2]));
        const u32 inside = Line::mask(column, in.size[2]);
        const Index pixel = in.pixel_stride * In::bytes, line_step = in.size[2] * pixel;
        const char* at = reinterpret_cast<const char*>(static_cast<const Storage*>(args.a.data) +
                                                       place.image * in.image_stride + channel) +
                         top * line_step + column * pixel;
        Index plane[planes];  // bytes from plane 0, or less than 0
        TILEWISE_UNROLL
        for (int z = 0; z < planes; ++z)
            plane[z] = planes == 1 ? 0 : input_plane(place.depth, z) * in.size[1] * line_step;
        const auto is_inside = [&](int i, int z) {
            return u32(top + i) < u32(in.size[1]) && i < lines && (planes == 1 || plane[z] >= 0);
        };
        typename Store::Target target = store.target(place, channel);
        Sums sums;
        Line next[planes];
        TILEWISE_UNROLL
        for (int z = 0; z < planes; ++z) next[z].load(at + plane[z], pixel, is_inside(0, z) ? inside : 0u);
        TILEWISE_ROLLED
        for (int turn = 0; turn < turns; ++turn) {
            TILEWISE_UNROLL
            for (int u = 0; u < Window::kTurn; ++u) {
                const int i = turn * Window::kTurn + u;
                open_rows(u, sums);
                at += line_step;
                TILEWISE_UNROLL
                for (int z = 0; z < planes; ++z) {
                    const Line line = next[z];
                    if (Window::is_used(u + 1)) next[z].load(at + plane[z], pixel, is_inside(i + 1, z) ? inside : 0u);
                    if (Window::is_used(u) && is_inside(i, z)) add_line(line, u, z, weights, sums);
                }
                close_rows<simple>(u, turn, target, sums);
            }
        }
    }
    template <bool simple>
    TILEWISE_DEVICE void close_rows(int u, int turn, const typename Store::Target& target, const Sums& sums) const {
        TILEWISE_UNROLL
        for (int o = 0; o < Window::kWindow; ++o) {
            const int row = Window::first_row(u) + o;
            const int counted = turn * Window::kWindow + row - Window::kBefore * Config::ct_stride[1];
            if (Window::closes(u, row)) store.template write_line<simple>(target, counted, sums[Window::place(row)]);
        }
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        griddep_launch();
        griddep_wait();
        const KernelConv& conv = args.conv;
        const PixelGrid in = Shape::kBackward ? pixel_grid(conv.out, conv.y) : pixel_grid(conv.in, conv.x);
        const PixelGrid out = Shape::kBackward ? pixel_grid(conv.in, conv.x) : pixel_grid(conv.out, conv.y);
        const u32 channel_tiles = ceil_div(int(conv.groups), Config::tile_n);
        const u32 block = block_index() / channel_tiles;
        const int first_channel = int(block_index() - block * channel_tiles) * Config::tile_n;
        const SharedAddress shared = shared_start();
        stage_weights<Weight, Shape, Config::tile_n>(args, first_channel, shared);
        sync_block();
        const int channel = first_channel + Shape::lane_across() * V;
        if (channel >= conv.groups) return;  // no more barriers below
        const Store store = {args, out, shared + kWeightBytes};
        const DepthwiseStrips self = {args, in, store};
        const Walk walk(conv, out);
        const Weights weights(shared + Shape::lane_across() * V * 4);
        const u32 patch = block * Shape::kRound + Shape::patch_in_round();
        if (patch >= walk.total) return;
        // Twice the code, so that the usual way has registers for itself.
        using Chain = ChainOf<Config>;
        if (finishes_in_registers<Chain, typename Config::Out, typename Store::Sum>(args)) {
            self.template run_patch<true>(walk.locate(patch), channel, weights);
        } else if constexpr (!Chain::kFixed) {
            self.template run_patch<false>(walk.locate(patch), channel, weights);
        }
    }
};

template <class Config>
using DepthwiseStripsKernel = typename ChooseType<Config::direction == Direction::backward_weight,
                                                  DepthwiseStripsWgrad<Config>, DepthwiseStrips<Config>>::type;

}  // namespace tilewise::gpu

#define TILEWISE_GPU_DEPTHWISE_STRIPS(Config)                                              \
    extern "C" __global__ void __launch_bounds__(Config::threads, Config::resident_blocks) \
        tilewise_kernel(const __grid_constant__ tilewise::KernelArgs args) {               \
        tilewise::gpu::DepthwiseStripsKernel<Config>::run(tilewise::gpu::in_place(args));  \
    }
