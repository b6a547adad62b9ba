// SPDX-License-Identifier: MIT
// Depthwise convolution by slices (channel_slice_shape.hpp): forward of stride 1 and 2 and backward data of stride 1, 16-bit types,
// channels last, two dimensions. For layers of few microseconds: a block asks for all it needs at once, and then goes through it
// without a barrier. A thread holds the weights of its channels as fp32 and walks along a row of outputs, or two, adding each
// column of inputs to the outputs that it meets. Where sums are only multiplied by alpha, the weights are already; other epilogues are
// applied in registers (channel_runs.hpp).
//
// Floors on an H200, for each output element: taps fp32 multiply-adds at 29.7e12 /s (3x3: 0.3 ps; with what goes with them, by
// the compiled code, 0.5 ps); the bytes of one input and one output at 4.27e12 /s (bf16: 0.94 ps): memory.
#pragma once
#include "../channel_runs.hpp"
#include "channel_slice_shape.hpp"

namespace tilewise::cuda::depthwise_channel_slice {

template <class Config>
struct DepthwiseChannelSlice {
    using T = typename Config::A;
    using Shape = ChannelSliceShape<Config>;
    using Window = typename Shape::Window;
    static constexpr bool kBackward = Config::direction == Direction::backward_data;
    static constexpr int V = Shape::kVector, kTaps = Shape::kTaps, kWeightBytes = kTaps * Shape::kChannels * 4;
    static_assert(kSame<T, typename Config::B> && kSame<T, typename Config::Out> && T::bytes == Shape::kBytes);
    static_assert(!kBackward || Shape::kStride == 1);
    using Weights = float[kTaps][V];
    using Sums = float[Shape::kOwnRows][Window::kWindow][V];
    using Chain = ChainOf<Config>;
    using Runs = ChannelRuns<Chain, T, V>;
    // The part of its channels that a thread holds.
    struct Held {
        Weights weights;
        typename Runs::Bias bias;
    };

    const KernelArgs& args;
    const ChannelSliceArgs& launch;
    PixelGrid in, out;
    int first_channel;
    SharedAddress zeros, slice;

    // Rows and columns of taps are met in reverse order on the way back.
    TILEWISE_DEVICE int before(int d) const {
        return kBackward ? Config::ct_filter[d] - 1 - int(args.conv.pad[d]) : int(args.conv.pad[d]);
    }
    TILEWISE_DEVICE int own_channel() const { return first_channel + Shape::lane_across() * V; }
    // As fp32 [tap][channel], times alpha where nothing else is done to the sums.
    TILEWISE_DEVICE void stage_weights(SharedAddress to) const {
        const float alpha = is_plain<Chain>(args) ? args.alpha : 1.0f;
        const auto* from = static_cast<const typename T::Storage*>(args.b.data) + Index(first_channel) * kTaps;
        const int channels = least(int(args.conv.groups) - first_channel, Shape::kChannels);
        for (int i = thread_index(); i < Shape::kChannels * kTaps; i += Shape::kThreads) {
            const int channel = i / kTaps, tap = i - channel * kTaps;
            const float value = channel < channels ? T::to_float(from[i]) * alpha : 0.0f;
            store_shared_float(to + ((kBackward ? kTaps - 1 - tap : tap) * Shape::kChannels + channel) * 4, value);
        }
    }
    TILEWISE_DEVICE void clear_zeros() const {
        TILEWISE_ROLLED
        for (int i = thread_index() * 16; i < in.size[2] * Shape::kPitch; i += Shape::kThreads * 16)
            store_shared<16>(zeros + i, zero_packet<16>());
    }

    // Column u of a turn against the outputs that it meets.
    static TILEWISE_DEVICE void add_column(const ChannelSliceLines<Shape>& lines, int u, const Weights& w, Sums& sums) {
        TILEWISE_UNROLL
        for (int i = 0; i < Shape::kLines; ++i) {
            float x[V];
            unpack_values<T, V>(load_shared<V * Shape::kBytes>(lines.at[i] + u * Shape::kPitch), x);
            TILEWISE_UNROLL
            for (int o = 0; o < Shape::kOwnRows * Window::kWindow; ++o) {
                const int own = o / Window::kWindow, r = i - own * Shape::kStride;
                const int output = Window::first_row(u) + o % Window::kWindow, t = Window::tap(u, output);
                if (t < 0 || r < 0 || r >= Shape::kRows) continue;
                TILEWISE_UNROLL
                for (int v = 0; v < V; ++v) sums[own][Window::place(output)][v] += x[v] * w[r * Shape::kColumns + t][v];
            }
        }
    }
    static TILEWISE_DEVICE void open(int u, Sums& sums) {
        TILEWISE_UNROLL
        for (int o = 0; o < Window::kWindow; ++o) {
            const int output = Window::first_row(u) + o;
            if (!Window::opens(u, output)) continue;
            TILEWISE_UNROLL
            for (int i = 0; i < Shape::kOwnRows * V; ++i) sums[i / V][Window::place(output)][i % V] = 0.0f;
        }
    }

    // Where the next outputs of a thread's rows go.
    struct Target {
        char* to;
        u32 column_step;
        Index row_step;
        int rows;  // that there are

        // The outputs whose last column is column u of a turn, if there are any.
        TILEWISE_DEVICE void close(int u, bool has, const Sums& sums, const DepthwiseChannelSlice& self,
                                   const Held& held) {
            TILEWISE_UNROLL
            for (int o = 0; o < Window::kWindow; ++o) {
                const int output = Window::first_row(u) + o;
                if (!Window::closes(u, output)) continue;
                TILEWISE_UNROLL
                for (int own = 0; own < Shape::kOwnRows; ++own) {
                    const bool inside = has && own < rows;
                    const auto packed = self.pack(sums[own][Window::place(output)], to + own * row_step, inside, held);
                    if (inside) store_global<V * Shape::kBytes>(to + own * row_step, packed);
                }
                to += has ? column_step : 0u;
            }
        }
    };
    // The elements of an output's sums, which go to `to`.
    TILEWISE_DEVICE Packet<V * Shape::kBytes> pack(const float (&sums)[V], const char* to, bool inside,
                                                   const Held& held) const {
        if (is_plain<Chain>(args)) return pack_values<T>(sums);
        const auto at = u32((to - static_cast<const char*>(args.c.data)) / Shape::kBytes);
        typename Runs::Values own;
        TILEWISE_UNROLL
        for (int v = 0; v < V; ++v) own.x[v] = sums[v];
        if (Chain::kFixed && Runs::in_registers(args)) {
            own = Runs::template finish<false>(args, own, at, own_channel(), inside, held.bias);
        } else {
            own = Runs::template finish<true>(args, own, at, own_channel(), inside, held.bias);
        }
        return pack_values<T>(own.x);
    }
    TILEWISE_DEVICE Target target(const ChannelSliceRange& outputs, const ChannelSlicePiece& piece) const {
        const Index pixel = Index(outputs.first_row + piece.row) * out.size[2] + piece.first_column;
        const Index element = (outputs.first_image + piece.image) * out.image_stride + pixel * out.pixel_stride;
        const Index own = element + own_channel();
        const u32 step = u32(out.pixel_stride * Shape::kBytes);
        return {static_cast<char*>(args.c.data) + own * Shape::kBytes, step, Index(out.size[2]) * step,
                outputs.rows - piece.row};
    }

    TILEWISE_DEVICE void walk(const ChannelSliceRange& outputs, const ChannelSliceRange& inputs,
                              const ChannelSlicePiece& piece, const Held& held) const {
        const int columns = least(launch.columns, out.size[2] - piece.first_column);
        const int steps = (columns - 1) * Shape::kStride + Shape::kColumns;
        int column = piece.first_column * Shape::kStride - before(2);
        ChannelSliceLines<Shape> lines(inputs, launch.slice_rows, in.size[2], piece.image,
                                       (outputs.first_row + piece.row) * Shape::kStride - before(1), column, slice,
                                       zeros);
        Target to = target(outputs, piece);
        Sums sums = {};
        TILEWISE_ROLLED
        for (int turn = 0; turn < steps; turn += Window::kTurn) {
            TILEWISE_UNROLL
            for (int u = 0; u < Window::kTurn; ++u, ++column) {
                if (turn + u >= steps) return;
                open(u, sums);
                if (u32(column) < u32(in.size[2])) add_column(lines, u, held.weights, sums);
                to.close(u, turn + u >= Shape::kColumns - 1, sums, *this, held);
            }
            lines.advance(Window::kTurn);
        }
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        griddep_launch();
        const KernelConv& conv = args.conv;
        const ChannelSliceArgs& launch = TILEWISE_FAMILY_ARGS(ChannelSliceArgs, args);
        const int tile = launch.channel_tiles.quotient(int(block_index()));
        const int channel_tile = int(block_index()) - tile * int(launch.channel_tiles.divisor);
        const PixelGrid in = kBackward ? pixel_grid(conv.out, conv.y) : pixel_grid(conv.in, conv.x);
        const PixelGrid out = kBackward ? pixel_grid(conv.in, conv.x) : pixel_grid(conv.out, conv.y);
        const SharedAddress shared = shared_start(), zeros = shared + kWeightBytes;
        const DepthwiseChannelSlice self = {
            args, launch, in, out, channel_tile * Shape::kChannels, zeros, zeros + in.size[2] * Shape::kPitch};
        const ChannelSliceRange outputs(launch, tile, int(conv.images), out.size[1]);
        const ChannelSliceRange inputs = outputs.inputs<Shape>(self.before(1), in.size[1]);
        prefetch_slice<Shape>(args.a.data, in, inputs, self.first_channel);
        griddep_wait();
        copy_slice<Shape>(args.a.data, in, inputs, launch.slice_rows, self.first_channel, int(conv.groups), self.slice);
        commit_copies();
        self.clear_zeros();
        self.stage_weights(shared);
        wait_copies<0>();
        sync_block();
        if (self.own_channel() >= int(conv.groups)) return;  // no more barriers below
        Held held;
        held.bias = Runs::read_bias(args, self.own_channel());
        TILEWISE_UNROLL
        for (int t = 0; t < kTaps; ++t)
            load_floats(shared + (t * Shape::kChannels + Shape::lane_across() * V) * 4, held.weights[t]);
        const int pieces = channel_slice_pieces(launch, Shape::kOwnRows);
        TILEWISE_ROLLED
        for (int i = Shape::place(); i < pieces; i += Shape::kPlaces) {
            const ChannelSlicePiece piece(launch, i, Shape::kOwnRows);
            if (piece.image < outputs.images && piece.row < outputs.rows && piece.first_column < out.size[2])
                self.walk(outputs, inputs, piece, held);
        }
    }
};

}  // namespace tilewise::cuda::depthwise_channel_slice

#define TILEWISE_CUDA_DEPTHWISE_CHANNEL_SLICE(Config)                                      \
    extern "C" __global__ void __launch_bounds__(Config::threads, Config::resident_blocks) \
        tilewise_kernel(const __grid_constant__ tilewise::KernelArgs args) {               \
        tilewise::cuda::depthwise_channel_slice::DepthwiseChannelSlice<Config>::run(args); \
    }
