// SPDX-License-Identifier: MIT
// Depthwise convolution of any filter, stride, dilation and number of output channels per group, known at launch only, in both
// layouts and all directions: what serves the problems that no compiled filter is for. A thread computes vector_a channels
// of one output (one channel where a group has several), tap by tap; of backward weight, kTapsAtOnce taps of one channel over
// its share of the pixels, which a block and then the parts of split_k add up as in depthwise_strips_wgrad.hpp. Nothing is kept for
// another pixel but by the caches.
//
// Floors on an H200: as for compiled filters (depthwise_strips.hpp); in fact three or four instructions for each multiply-add.
#pragma once
#include "depthwise_reduce.hpp"
#include "depthwise_store.hpp"

namespace tilewise::gpu {

// A pixel of a grid, outermost dimension first.
struct Pixel {
    Index image;
    int at[3];
};
TILEWISE_DEVICE Pixel locate_pixel(Index pixel, const PixelGrid& grid) {
    const Index line = quotient(pixel, grid.size[2]), plane = quotient(line, grid.size[1]);
    const Index image = quotient(plane, grid.size[0]);
    return {image,
            {int(plane - image * grid.size[0]), int(line - plane * grid.size[1]), int(pixel - line * grid.size[2])}};
}

// Forward and backward data.
template <class Config>
struct DepthwiseAny {
    using In = typename Config::A;
    using Weight = typename Config::B;
    using Out = typename Config::Out;
    using Sum = SumOf<In>;
    static constexpr bool kBackward = Config::direction == Direction::backward_data;
    static constexpr int V = Config::vector_a;

    const KernelArgs& args;
    PixelGrid in, out;
    const KernelActivation &from, &to;

    // The input that output o meets through tap t along dimension d, or -1.
    TILEWISE_DEVICE int input(int d, int o, int t) const {
        const KernelConv& conv = args.conv;
        const int stride = int(conv.stride[d]), shift = t * int(conv.dilation[d]), pad = int(conv.pad[d]);
        if (!kBackward) {
            const int i = o * stride + shift - pad;
            return u32(i) < u32(in.size[d]) ? i : -1;
        }
        const int distance = o + pad - shift, i = stride == 1 ? distance : distance / stride;
        return distance >= 0 && i * stride == distance && i < in.size[d] ? i : -1;
    }

    // Adds the products of all taps between one input channel (V of them) and one output channel.
    TILEWISE_DEVICE void add_taps(const Pixel& pixel, const typename In::Storage* x, const typename Weight::Storage* w,
                                  float (&sums)[V]) const {
        const int f1 = int(args.conv.filter[1]), f2 = int(args.conv.filter[2]),
                  taps = int(args.conv.filter[0]) * f1 * f2;
        for (int t0 = 0; t0 < args.conv.filter[0]; ++t0) {
            const int i0 = input(0, pixel.at[0], t0);
            for (int t1 = 0; i0 >= 0 && t1 < f1; ++t1) {
                const int i1 = input(1, pixel.at[1], t1);
                if (i1 < 0) continue;
                const typename In::Storage* line = x + (Index(i0) * in.size[1] + i1) * in.size[2] * in.pixel_stride;
                const typename Weight::Storage* row = w + (t0 * f1 + t1) * f2;
                for (int t2 = 0; t2 < f2; ++t2) {
                    const int i2 = input(2, pixel.at[2], t2);
                    if (i2 < 0) continue;
                    float values[V];
                    unpack_values<In, V>(load_global<V * In::bytes>(line + i2 * in.pixel_stride), values);
                    TILEWISE_UNROLL
                    for (int v = 0; v < V; ++v) sums[v] += values[v] * Weight::to_float(row[v * taps + t2]);
                }
            }
        }
    }

    TILEWISE_DEVICE void run_pixel(Index row, Index channel) const {
        const Pixel pixel = locate_pixel(row, out);
        // Channels per group of the outputs and of the inputs of this direction; one of them is 1.
        const Index outputs = kBackward ? args.conv.c : args.conv.k, inputs = kBackward ? args.conv.k : args.conv.c;
        const Index group = quotient(channel, outputs),
                    taps = args.conv.filter[0] * args.conv.filter[1] * args.conv.filter[2];
        const auto* x = static_cast<const typename In::Storage*>(args.a.data) + pixel.image * from.image_stride;
        const auto* w = static_cast<const typename Weight::Storage*>(args.b.data);
        float sums[V] = {};
        for (Index i = 0; i < inputs; ++i) {
            const Index filter = kBackward ? group * inputs + i : channel;  // one for each output channel of forward
            add_taps(pixel, x + group * from.group_stride + i * from.channel_stride, w + filter * taps, sums);
        }
        ValueOf<Sum, Out> values[V];
        TILEWISE_ROLLED
        for (int v = 0; v < V; ++v) {
            const Index c = channel + v, g = quotient(c, outputs);
            values[v] = finish<ChainOf<Config>, Out>(args, as_sum<Sum>(sums[v]), g, row, c - g * outputs);
            store<Out>(args, values[v], g, row, c - g * outputs);
        }
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        griddep_launch();
        griddep_wait();
        const KernelConv& conv = args.conv;
        const PixelGrid in = kBackward ? pixel_grid(conv.out, conv.y) : pixel_grid(conv.in, conv.x);
        const PixelGrid out = kBackward ? pixel_grid(conv.in, conv.x) : pixel_grid(conv.out, conv.y);
        const DepthwiseAny self = {args, in, out, kBackward ? conv.y : conv.x, kBackward ? conv.x : conv.y};
        // Neighbouring threads take neighbours in memory.
        const Index channels = conv.groups * (kBackward ? conv.c : conv.k) / V;
        const Index rows = conv.images * Index(out.size[0]) * out.size[1] * out.size[2], total = rows * channels;
        const Index threads = Index(block_count()) * block_threads();
        TILEWISE_ROLLED
        for (Index at = Index(block_index()) * block_threads() + thread_index(); at < total; at += threads) {
            const Index fast = Config::channels_last ? channels : rows, slow = quotient(at, fast),
                        rest = at - slow * fast;
            self.run_pixel(Config::channels_last ? slow : rest, (Config::channels_last ? rest : slow) * V);
        }
    }
};

// Backward weight.
template <class Config>
struct DepthwiseAnyWgrad {
    using Dy = typename Config::A;
    using X = typename Config::B;
    using Out = typename Config::Out;
    static constexpr int kLanes = kArchLanes, kWarps = Config::wave_m, kTapsAtOnce = 8;
    static_assert(kWarps * kLanes * kTapsAtOnce * 4 <= Config::shared_bytes);

    const KernelArgs& args;
    PixelGrid in, out;

    // The sums of one channel's taps over pixels [begin, end), every step-th.
    TILEWISE_DEVICE void add_pixels(Index channel, int first_tap, Index begin, Index end, int step,
                                    float (&sums)[kTapsAtOnce]) const {
        const KernelConv& conv = args.conv;
        const int f1 = int(conv.filter[1]), f2 = int(conv.filter[2]), taps = int(conv.filter[0]) * f1 * f2;
        const Index group = quotient(channel, conv.k);
        const auto* dy = static_cast<const typename Dy::Storage*>(args.a.data) + group * conv.y.group_stride +
                         (channel - group * conv.k) * conv.y.channel_stride;
        const auto* x = static_cast<const typename X::Storage*>(args.b.data) + group * conv.x.group_stride;
        for (Index pixel = begin; pixel < end; pixel += step) {
            const Pixel p = locate_pixel(pixel, out);
            const Index inner = (Index(p.at[0]) * out.size[1] + p.at[1]) * out.size[2] + p.at[2];
            const float d = Dy::to_float(dy[p.image * conv.y.image_stride + inner * conv.y.pixel_stride]);
            TILEWISE_UNROLL
            for (int i = 0; i < kTapsAtOnce; ++i) {
                const int tap = first_tap + i, line = tap / f2, t2 = tap - line * f2, t0 = line / f1,
                          t1 = line - t0 * f1;
                const int i0 = p.at[0] * int(conv.stride[0]) + t0 * int(conv.dilation[0]) - int(conv.pad[0]);
                const int i1 = p.at[1] * int(conv.stride[1]) + t1 * int(conv.dilation[1]) - int(conv.pad[1]);
                const int i2 = p.at[2] * int(conv.stride[2]) + t2 * int(conv.dilation[2]) - int(conv.pad[2]);
                const bool inside =
                    tap < taps && u32(i0) < u32(in.size[0]) && u32(i1) < u32(in.size[1]) && u32(i2) < u32(in.size[2]);
                const Index at = (Index(i0) * in.size[1] + i1) * in.size[2] + i2;
                if (inside) sums[i] += d * X::to_float(x[p.image * conv.x.image_stride + at * conv.x.pixel_stride]);
            }
        }
    }

    TILEWISE_DEVICE void write_sum(int part, Index channel, Index tap, Index taps, float sum) const {
        if (args.split_k > 1) {
            const Index total = args.conv.groups * args.conv.k * taps;
            static_cast<float*>(args.workspace)[part * total + channel * taps + tap] = sum;
        } else {
            const Index group = quotient(channel, args.conv.k), row = channel - group * args.conv.k;
            store<Out>(args, finish<ChainOf<Config>, Out>(args, sum, group, row, tap), group, row, tap);
        }
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        griddep_launch();
        griddep_wait();
        const KernelConv& conv = args.conv;
        const DepthwiseAnyWgrad self = {args, pixel_grid(conv.in, conv.x), pixel_grid(conv.out, conv.y)};
        const Index channels = conv.groups * conv.k, taps = conv.filter[0] * conv.filter[1] * conv.filter[2];
        const u32 channel_tiles = ceil_div(int(channels), kLanes), tap_tiles = ceil_div(int(taps), kTapsAtOnce);
        const u32 line = block_index() / channel_tiles, part = line / tap_tiles;
        const Index channel = Index(block_index() - line * channel_tiles) * kLanes + lane_index();
        const int first_tap = int(line - part * tap_tiles) * kTapsAtOnce, warp = thread_index() / kLanes;
        const Index pixels = conv.images * Index(self.out.size[0]) * self.out.size[1] * self.out.size[2];
        float sums[kTapsAtOnce] = {};
        if (channel < channels) {
            self.add_pixels(channel, first_tap, pixels * part / args.split_k + warp, pixels * (part + 1) / args.split_k,
                            kWarps, sums);
        }
        const SharedAddress shared = shared_start();
        TILEWISE_UNROLL
        for (int i = 0; i < kTapsAtOnce; ++i)
            store_shared_float(shared + ((warp * kTapsAtOnce + i) * kLanes + lane_index()) * 4, sums[i]);
        sync_block();
        for (int i = warp; i < kTapsAtOnce; i += kWarps) {
            float sum = 0;
            for (int w = 0; w < kWarps; ++w)
                sum += load_shared_float(shared + ((w * kTapsAtOnce + i) * kLanes + lane_index()) * 4);
            if (channel < channels && first_tap + i < taps)
                self.write_sum(int(part), channel, first_tap + i, taps, sum);
        }
    }
};

template <class Config>
using DepthwiseAnyKernel = typename ChooseType<Config::direction == Direction::backward_weight,
                                               DepthwiseAnyWgrad<Config>, DepthwiseAny<Config>>::type;

}  // namespace tilewise::gpu

#define TILEWISE_GPU_DEPTHWISE_ANY(Config)                                                 \
    extern "C" __global__ void __launch_bounds__(Config::threads, Config::resident_blocks) \
        tilewise_kernel(const __grid_constant__ tilewise::KernelArgs args) {               \
        tilewise::gpu::DepthwiseAnyKernel<Config>::run(args);                              \
    }
