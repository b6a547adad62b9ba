// SPDX-License-Identifier: MIT
// How the parts of depthwise backward weight meet: each leaves its sums in the workspace, [part][channel][tap], and a second kernel adds
// them up.
#pragma once
#include "../common/depthwise_sums.hpp"
#include "epilogue.hpp"
#include "packet.hpp"

namespace tilewise::gpu {

// The sum of a tap: a part of it to the workspace, [part][channel][tap], or all of it to where it belongs.
template <class Config, int taps>
TILEWISE_CALLED void write_weight_sum(const KernelArgs& args, int part, Index channel, int tap, float sum) {
    if (args.split_k > 1 && !Config::cluster_k) {
        static_cast<float*>(args.workspace)[(part * args.conv.groups + channel) * taps + tap] = sum;
    } else {
        using Out = typename Config::Out;
        store<Out>(args, finish<ChainOf<Config>, Out>(args, sum, channel, 0, tap), channel, 0, tap);
    }
}

// Adds up the parts' sums, each of which has one for every tap of every channel. A warp takes some neighbouring sums, and its lanes
// take turns at the parts of each; the order is always the same. Blocks of whole warps.
template <class Config>
TILEWISE_DEVICE void reduce_depthwise(const KernelArgs& args) {
    griddep_launch();
    constexpr int kLanes = kArchLanes,
                  kInFlight = 22;  // of a lane: 88 parts by four of them, or 264 by sixteen, at once
    const int sums = depthwise_sums_per_warp(args.split_k), turns = kLanes / sums, turn = lane_index() / sums;
    const Index total = args.batch * args.m * args.n;
    const Index first = (Index(block_index()) * block_threads() + thread_index()) / kLanes * sums;
    const Index at = first + lane_index() - turn * sums;
    const Index line = quotient(at, args.n), batch = quotient(line, args.m), row = line - batch * args.m;
    const float* from = static_cast<const float*>(args.workspace) + at;
    griddep_wait();
    float sum = 0;
    TILEWISE_ROLLED
    for (int part = turn; part < args.split_k; part += turns * kInFlight) {
        float some[kInFlight];
        TILEWISE_UNROLL
        for (int i = 0; i < kInFlight; ++i) {
            const int p = part + i * turns;
            some[i] = p < args.split_k && at < total ? from[p * total] : 0.0f;
        }
        TILEWISE_UNROLL
        for (int i = 0; i < kInFlight; ++i) sum += some[i];
    }
    TILEWISE_UNROLL
    for (int mask = 1; mask < kLanes; mask *= 2) {
        if (mask >= sums) sum += exchange(sum, mask);
    }
    if (turn > 0 || at >= total) return;
    const Index col = at - line * args.n;
    using Out = typename Config::Out;
    store<Out>(args, finish<ChainOf<Config>, Out>(args, sum, batch, row, col), batch, row, col);
}

}  // namespace tilewise::gpu

#define TILEWISE_GPU_REDUCE_DEPTHWISE(Config)                                                       \
    extern "C" __global__ void tilewise_reduce(const __grid_constant__ tilewise::KernelArgs args) { \
        tilewise::gpu::reduce_depthwise<Config>(args);                                              \
    }
