// SPDX-License-Identifier: MIT
// The kernel before a warpgroup GEMM whose operands do not begin lines on multiples of 16 bytes (vector_a or vector_b is one
// element): copies them to the workspace, where they do (../common/packing.hpp). Reads each element once or twice, 16 bytes at a time.
#pragma once
#include "../common/packing.hpp"
#include "unaligned_chunk.hpp"

namespace tilewise::gpu {

// A line of the operand as it lies in memory is along k (lines of rows or columns) or along m or n.
template <class T>
TILEWISE_DEVICE PackedMatrices packed_matrices(const KernelArgs& args, const KernelMatrix& matrix, Index extent,
                                               bool along_k) {
    return {along_k ? args.k : extent, along_k ? extent : args.k, matrix.batch_stride == 0 ? 1 : args.batch, T::bytes};
}

// Any number of blocks of any size; a thread writes 16 bytes at a time.
template <class T>
TILEWISE_DEVICE void pack_matrices(const KernelMatrix& from, Index line_stride, const PackedMatrices& packed,
                                   char* to) {
    constexpr int kElements = kPackedBytes / T::bytes;
    const Index packs = packed.line_bytes() / kPackedBytes, lines = packed.lines * packed.matrices;
    const Index threads = Index(block_count()) * block_threads();
    const Index last_line = (packed.matrices - 1) * from.batch_stride + (packed.lines - 1) * line_stride;
    const InnerChunks inner = InnerChunks::of(from.data, (last_line + packed.length) * T::bytes);
    TILEWISE_ROLLED
    for (Index at = Index(block_index()) * block_threads() + thread_index(); at < packs * lines; at += threads) {
        const Index line = quotient(at, packs), first = (at - line * packs) * kElements;
        const Index matrix = quotient(line, packed.lines);
        const auto* source = static_cast<const typename T::Storage*>(from.data) + matrix * from.batch_stride +
                             (line - matrix * packed.lines) * line_stride + first;
        const Index left = (packed.length - first) * T::bytes;
        UnalignedChunk chunk;
        chunk.load<T::bytes>(reinterpret_cast<const char*>(source), left < kPackedBytes ? int(left) : kPackedBytes,
                             inner);
        store_global<kPackedBytes>(to + at * kPackedBytes, chunk.joined());
    }
}

template <class Config>
TILEWISE_DEVICE void pack_operands(const KernelArgs& args) {
    using A = typename Config::A;
    using B = typename Config::B;
    constexpr bool kPacksA = Config::vector_a * A::bytes != kPackedBytes,
                   kPacksB = Config::vector_b * B::bytes != kPackedBytes;
    griddep_launch();
    griddep_wait();
    char* to = static_cast<char*>(args.workspace) + partial_bytes(args.m, args.n, args.batch, args.split_k);
    const PackedMatrices a = packed_matrices<A>(args, args.a, args.m, Config::a_row);
    const PackedMatrices b = packed_matrices<B>(args, args.b, args.n, !Config::b_row);
    if constexpr (kPacksA) pack_matrices<A>(args.a, Config::a_row ? args.a.row_stride : args.a.col_stride, a, to);
    if constexpr (kPacksB) {
        pack_matrices<B>(args.b, Config::b_row ? args.b.row_stride : args.b.col_stride, b,
                         kPacksA ? to + a.bytes() : to);
    }
}

}  // namespace tilewise::gpu

#define TILEWISE_GPU_PACK(Config)                                                                 \
    extern "C" __global__ void tilewise_pack(const __grid_constant__ tilewise::KernelArgs args) { \
        tilewise::gpu::pack_operands<Config>(args);                                               \
    }
