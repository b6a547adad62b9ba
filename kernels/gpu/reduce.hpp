// SPDX-License-Identifier: MIT
// The second kernel of a split reduction: adds up the partial sums of the workspace, part 0 first, so that the result is the
// same every time, and finishes them. Reads split_k x 4 bytes and writes one element for each element of C. A source has it
// where its kernel may leave such parts (src/family/gpu/gpu_source.cpp).
#pragma once
#include "epilogue.hpp"
#include "packet.hpp"

namespace tilewise::gpu {

// Part 0 first. Several are under way at a time: each comes from the cache, and takes as long to come as any.
template <class Sum>
TILEWISE_DEVICE Sum sum_of_parts(const Sum* first, int parts, Index distance) {
    constexpr int kAhead = 8;
    Sum sum = 0;
    int part = 0;
    TILEWISE_ROLLED
    for (; part + kAhead <= parts; part += kAhead) {
        Sum held[kAhead];
        TILEWISE_UNROLL
        for (int i = 0; i < kAhead; ++i) held[i] = first[(part + i) * distance];
        TILEWISE_UNROLL
        for (int i = 0; i < kAhead; ++i) sum += held[i];
    }
    for (; part < parts; ++part) sum += first[part * distance];
    return sum;
}

// Any number of blocks of any size.
template <class Chain, class Out, class Sum>
TILEWISE_DEVICE void reduce_parts(const KernelArgs& args, int parts) {
    griddep_launch();
    griddep_wait();
    const Index area = args.m * args.n, total = args.batch * area;
    const Sum* sums = static_cast<const Sum*>(args.workspace);
    const Index threads = Index(block_count()) * block_threads();
    TILEWISE_ROLLED
    for (Index at = Index(block_index()) * block_threads() + thread_index(); at < total; at += threads) {
        const Sum sum = sum_of_parts(sums + at, parts, total);
        const Index line = quotient(at, args.n), col = at - line * args.n;
        const Index batch = quotient(line, args.m), row = line - batch * args.m;
        store<Out>(args, finish<Chain, Out>(args, sum, batch, row, col), batch, row, col);
    }
}

}  // namespace tilewise::gpu

#define TILEWISE_GPU_REDUCE(Config)                                                                 \
    extern "C" __global__ void tilewise_reduce(const __grid_constant__ tilewise::KernelArgs args) { \
        using Sum = tilewise::gpu::SumOf<typename Config::A>;                                       \
        using Chain = tilewise::gpu::ChainOf<Config>;                                               \
        tilewise::gpu::reduce_parts<Chain, typename Config::Out, Sum>(args, args.split_k);          \
    }
