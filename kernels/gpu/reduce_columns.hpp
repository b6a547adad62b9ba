// SPDX-License-Identifier: MIT
// The second kernel of backward data by columns (cuda/col2im_conv/col2im_conv.hpp): an element of dx is the sum of what the taps that meet its
// pixel have left in the workspace, [part of k][pixel of dy][tap][channel]. A thread has a run of channels of a pixel, channels fastest, so
// that neighbours read neighbours; it takes taps and parts always in the same order, and finishes the run. Reads every sum once, but for
// those that lead into the padding.
#pragma once
#include "../common/col2im_conv_args.hpp"
#include "epilogue.hpp"
#include "packet.hpp"

namespace tilewise::gpu {

// Runs of V channels.
template <class Config, int V>
struct ColumnSums {
    using Out = typename Config::Out;
    using Walk = ColumnWalk<Config::ndim>;

    // Some taps at a time, of one part after the other: each comes from the cache, and takes as long to come as any.
    static TILEWISE_DEVICE void add(const KernelArgs& args, Walk& walk, int channel, float (&sum)[V]) {
        constexpr int kAhead = 8;
        const Index part_sums = args.m * args.n;
        TILEWISE_ROLLED
        for (int left = walk.count; left > 0; left -= kAhead) {
            int at[kAhead];
            TILEWISE_UNROLL
            for (int i = 0; i < kAhead; ++i) at[i] = walk.at + channel, walk.next();
            const auto* part = static_cast<const float*>(args.workspace);
            TILEWISE_ROLLED
            for (int p = 0; p < args.split_k; ++p, part += part_sums) {
                Packet<V * 4> held[kAhead];
                TILEWISE_UNROLL
                for (int i = 0; i < kAhead; ++i) {
                    held[i] = zero_packet<V * 4>();
                    if (i < left) held[i] = load_global<V * 4>(part + at[i]);
                }
                TILEWISE_UNROLL
                for (int i = 0; i < kAhead; ++i) {
                    TILEWISE_UNROLL
                    for (int e = 0; e < V; ++e) sum[e] += float_of(held[i].words[e]);
                }
            }
        }
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        const auto& own = TILEWISE_FAMILY_ARGS(Col2imConvArgs, args);
        const KernelConv& conv = args.conv;
        const Index runs = conv.images * conv.in[0] * conv.in[1] * conv.in[2] * Index(own.channel_runs.divisor);
        const Index threads = Index(block_count()) * block_threads();
        TILEWISE_ROLLED
        for (Index at = Index(block_index()) * block_threads() + thread_index(); at < runs; at += threads) {
            const int pixel = own.channel_runs.quotient(int(at));
            const int channel = (int(at) - pixel * int(own.channel_runs.divisor)) * V;
            Walk walk(own, pixel);
            float sum[V] = {}, values[V];
            add(args, walk, channel, sum);
            const RunPlace place = run_place(args, 0, pixel, channel, V);
            finish_run<ChainOf<Config>, Out, Along::columns>(args, sum, place, values);
            write_run<Out>(args, place, values);
        }
    }
};

// Any number of blocks of any size.
template <class Config>
TILEWISE_DEVICE void reduce_columns(const KernelArgs& args) {
    griddep_launch();
    griddep_wait();
    if (TILEWISE_FAMILY_ARGS(Col2imConvArgs, args).vector == kColumnRun) {
        ColumnSums<Config, kColumnRun>::run(args);
    } else {
        ColumnSums<Config, 1>::run(args);
    }
}

}  // namespace tilewise::gpu

#define TILEWISE_GPU_REDUCE_COLUMNS(Config)                                                         \
    extern "C" __global__ void tilewise_reduce(const __grid_constant__ tilewise::KernelArgs args) { \
        tilewise::gpu::reduce_columns<Config>(args);                                                \
    }
