// SPDX-License-Identifier: MIT
// The second kernel of a reduction that is split into many parts with few results (halo_weight.hpp): the lanes of a warp share the
// parts of 16 neighbouring sums, four of these to a lane, so that few reads follow each other. Always the same order: every
// eighth part in a lane, then lanes in pairs. Any number of blocks of whole warps.
#pragma once
#include "reduce.hpp"

namespace tilewise::cuda {

struct ManyParts {
    static constexpr int kLanes = 32, kRun = 4, kRuns = 4, kSharers = kLanes / kRuns, kWarpSums = kRun * kRuns;

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

template <class Out>
TILEWISE_DEVICE void reduce_many_parts(const KernelArgs& args, int parts) {
    using P = ManyParts;
    const Index total = args.batch * args.m * args.n;
    if (total % P::kRun != 0) return reduce_parts<Out, float>(args, parts);
    griddep_launch();
    griddep_wait();
    const int lane = lane_index(), sharer = lane / P::kRuns;
    const int warps = block_threads() / P::kLanes;
    const float* sums = static_cast<const float*>(args.workspace);
    // The usual case needs neither divisions nor an epilogue: the code that runs is short, and in no cache when it starts.
    const bool is_flat = is_plain(args) && args.c_image_rows == 0 && args.c.col_stride == 1 &&
                         args.c.row_stride == args.n && args.c.batch_stride == args.m * args.n;
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
        const Index at = run + sharer;
        if (is_flat) {
            static_cast<typename Out::Storage*>(args.c.data)[at] = element_of<Out>(finish_plain<Out>(args, mine));
            continue;
        }
        const Index line = quotient(at, args.n), col = at - line * args.n;
        const Index batch = quotient(line, args.m), row = line - batch * args.m;
        store<Out>(args, finish<Out>(args, mine, batch, row, col), batch, row, col);
    }
}

}  // namespace tilewise::cuda

// `together` parts are one in the workspace.
#define TILEWISE_CUDA_REDUCE_MANY(Config, together)                                                 \
    extern "C" __global__ void tilewise_reduce(const __grid_constant__ tilewise::KernelArgs args) { \
        tilewise::cuda::reduce_many_parts<typename Config::Out>(args, args.split_k / (together));   \
    }
