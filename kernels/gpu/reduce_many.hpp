// SPDX-License-Identifier: MIT
// The second kernel of a reduction that is split into many parts with few results (patch_wgrad.hpp): the lanes of a warp share the
// parts of 16 neighbouring sums, four of these to a lane, so that few reads follow each other. Always the same order: every
// eighth part in a lane, then lanes in pairs. Few parts are read by one thread for its four sums. Any number of blocks of whole warps.
#pragma once
#include "../common/few_parts.hpp"
#include "drain.hpp"
#include "reduce.hpp"

namespace tilewise::gpu {

struct ManyParts {
    static constexpr int kLanes = kArchLanes, kRun = 4, kRuns = 4, kSharers = kLanes / kRuns, kWarpSums = kRun * kRuns;

    // The sums of parts `part`, part + kSharers ... of the run at `first`.
    static TILEWISE_DEVICE void add_run(float (&sum)[kRun], const float* first, int part, int parts, Index distance) {
        constexpr int kAhead = 4;
        TILEWISE_ROLLED
        for (; part < parts; part += kAhead * kSharers) {
            Packet<16> held[kAhead];
            TILEWISE_UNROLL
            for (int i = 0; i < kAhead; ++i) {
                const int own = part + i * kSharers;
                held[i] = zero_packet<16>();
                if (own < parts) held[i] = load_global<16>(first + own * distance);
            }
            TILEWISE_UNROLL
            for (int i = 0; i < kAhead; ++i) {
                TILEWISE_UNROLL
                for (int e = 0; e < kRun; ++e) sum[e] += float_of(held[i].words[e]);
            }
        }
    }
};

template <class Chain, class Out>
TILEWISE_DEVICE void put_sum(const KernelArgs& args, Index at, float sum, bool is_flat) {
    if (is_flat) {
        static_cast<typename Out::Storage*>(args.c.data)[at] = element_of<Out>(finish_plain<Out>(args, sum));
        return;
    }
    const Index line = quotient(at, args.n), col = at - line * args.n;
    const Index batch = quotient(line, args.m), row = line - batch * args.m;
    store<Out>(args, finish<Chain, Out>(args, sum, batch, row, col), batch, row, col);
}

template <class Chain, class Out>
TILEWISE_DEVICE void reduce_few_parts(const KernelArgs& args, int parts, Index total, bool is_flat) {
    const float* sums = static_cast<const float*>(args.workspace);
    constexpr int kBytes = kFewRun * Out::bytes;
    const bool whole = is_flat && reinterpret_cast<u64>(args.c.data) % kBytes == 0;
    const Index threads = Index(block_count()) * block_threads();
    TILEWISE_ROLLED
    for (Index at = (Index(block_index()) * block_threads() + thread_index()) * kFewRun; at < total;
         at += threads * kFewRun) {
        Packet<16> held[kFewParts];
        TILEWISE_UNROLL
        for (int i = 0; i < kFewParts; ++i) {
            held[i] = zero_packet<16>();
            if (i < parts) held[i] = load_global<16>(sums + i * total + at);
        }
        float sum[kFewRun] = {}, values[kFewRun];
        TILEWISE_UNROLL
        for (int e = 0; e < kFewRun; ++e) {
            TILEWISE_UNROLL
            for (int i = 0; i < kFewParts; ++i) sum[e] += float_of(held[i].words[e]);
            values[e] = finish_plain<Out>(args, sum[e]);
        }
        if (whole) {
            store_global<kBytes>(static_cast<typename Out::Storage*>(args.c.data) + at, pack_values<Out>(values));
            continue;
        }
        TILEWISE_UNROLL
        for (int e = 0; e < kFewRun; ++e) put_sum<Chain, Out>(args, at + e, sum[e], is_flat);
    }
}

template <class Chain, class Out>
TILEWISE_DEVICE void reduce_many_parts(const KernelArgs& args, int parts) {
    using P = ManyParts;
    const Index total = args.batch * args.m * args.n;
    if (total % P::kRun != 0) return reduce_parts<Chain, Out, float>(args, parts);
    griddep_launch();
    griddep_wait();
    const int lane = lane_index(), sharer = lane / P::kRuns;
    const int warps = block_threads() / P::kLanes;
    const float* sums = static_cast<const float*>(args.workspace);
    // The usual case needs neither divisions nor an epilogue: the code that runs is short, and in no cache when it starts.
    const bool is_flat = is_plain<Chain>(args) && args.c_image_rows == 0 && args.c.col_stride == 1 &&
                         args.c.row_stride == args.n && args.c.batch_stride == args.m * args.n;
    if (parts <= kFewParts) return reduce_few_parts<Chain, Out>(args, parts, total, is_flat);
    TILEWISE_ROLLED
    for (Index first = (Index(block_index()) * warps + warp_index()) * P::kWarpSums; first < total;
         first += Index(block_count()) * warps * P::kWarpSums) {
        const Index run = first + lane % P::kRuns * P::kRun;
        float sum[P::kRun] = {};
        if (run < total) P::add_run(sum, sums + run, sharer, parts, total);
        TILEWISE_UNROLL
        for (int mask = P::kRuns; mask < P::kLanes; mask *= 2) {
            TILEWISE_UNROLL
            for (int e = 0; e < P::kRun; ++e) sum[e] += exchange(sum[e], mask);
        }
        if (run >= total || sharer >= P::kRun) continue;  // every sharer has all of the sums: the first write one each
        const float mine = sharer == 0 ? sum[0] : sharer == 1 ? sum[1] : sharer == 2 ? sum[2] : sum[3];
        put_sum<Chain, Out>(args, run + sharer, mine, is_flat);
    }
}

}  // namespace tilewise::gpu

// `together` parts are one in the workspace.
#define TILEWISE_GPU_REDUCE_MANY(Config, together)                                                      \
    extern "C" __global__ void tilewise_reduce(const __grid_constant__ tilewise::KernelArgs args) {     \
        using Chain = tilewise::gpu::ChainOf<Config>;                                                   \
        tilewise::gpu::reduce_many_parts<Chain, typename Config::Out>(args, args.split_k / (together)); \
    }
