// SPDX-License-Identifier: MIT
// Probes of the bulk tensor copies: where a box's elements lie in shared memory, and what happens to a box that is partly
// outside the tensor. Tensors are of 16-bit elements; the swizzle is that of the tensor map.
#pragma once
#include "hopper.hpp"
#include "probe_table.hpp"

namespace tilewise::cuda {

inline constexpr int kProbeBarrier = 16384;  // of shared memory, behind every box

// A's element i (in memory) holds i + 1. `raw`: table[place in shared memory] = what arrived there. Otherwise table[i] = byte
// where element i arrived, counted from a multiple of 1024 bytes `at` bytes before the box.
template <int rows, int columns, int at, int x, int y, bool raw>
struct CopyInProbe {
    static constexpr u32 kUntouched = 0xffff;
    static_assert(at + rows * columns * 2 <= kProbeBarrier);

    static TILEWISE_DEVICE void run(const KernelArgs& args, const TensorMap& a, const TensorMap&) {
        const SharedAddress shared = shared_start(), barrier = shared + kProbeBarrier;
        fill_shared(shared, kProbeBarrier / 2, [](int) { return kUntouched; });
        if (thread_index() == 0) {
            barrier_init(barrier, 1);
            barrier_init_fence();
        }
        async_proxy_fence();
        sync_block();
        if (thread_index() == 0) {
            barrier_expect(barrier, rows * columns * 2);
            copy_box(shared + at, a, barrier, x, y, 0, kKeepNormal);
        }
        barrier_wait(barrier, 0);
        for (int i = thread_index(); i < kProbeBarrier / 2; i += block_threads()) {
            const u32 value = load_shared_half(shared + i * 2);
            if constexpr (raw) {
                if (i < rows * columns) table_of(args)[i] = value;
            } else {
                if (value != kUntouched && value > 0) table_of(args)[value - 1] = i * 2;
            }
        }
    }
};

// A's element i holds i + 1; table[pixel][channel] = what arrived there of a load of pixels (im2col) from `first` on, each moved
// by `offset`. Of `dims` coordinates the innermost are given.
template <int dims, int pixels, int channels, int first, int offset>
struct PixelsProbe {
    static TILEWISE_DEVICE void run(const KernelArgs& args, const TensorMap& a, const TensorMap&) {
        const SharedAddress shared = shared_start(), barrier = shared + kProbeBarrier;
        if (thread_index() == 0) {
            barrier_init(barrier, 1);
            barrier_init_fence();
            barrier_expect(barrier, pixels * channels * 2);
            if constexpr (dims == 1) copy_im2col(shared, a, barrier, 0, first, 0, offset, kKeepNormal);
            if constexpr (dims == 2)
                copy_im2col(shared, a, barrier, 0, first, first, 0, offset, offset + 1, kKeepNormal);
            if constexpr (dims == 3) {
                copy_im2col(shared, a, barrier, 0, first, first, first, 0, offset, offset + 1, offset, kKeepNormal);
            }
        }
        sync_block();
        barrier_wait(barrier, 0);
        for (int i = thread_index(); i < pixels * channels; i += block_threads()) {
            table_of(args)[i] = load_shared_half(shared + i * 2);
        }
    }
};

// Shared memory's element i holds i + 1, B zeros. `raw`: table[place in B's memory] = what arrived there. Otherwise the byte of
// shared memory that it came from.
template <int rows, int columns, int x, int y, bool raw>
struct CopyOutProbe {
    static TILEWISE_DEVICE void run(const KernelArgs& args, const TensorMap&, const TensorMap& b) {
        const SharedAddress shared = shared_start();
        fill_shared(shared, rows * columns, [](int i) { return i + 1; });
        async_proxy_fence();
        sync_block();
        if (thread_index() == 0) {
            store_box(b, shared, x, y, 0);
            store_commit();
            store_wait<0>();
        }
        sync_block();
        for (int i = thread_index(); i < rows * columns; i += block_threads()) {
            const u32 value = load_global<2>(static_cast<const u16*>(args.b.data) + i).value;
            table_of(args)[i] = raw ? value : (value - 1) * 2;
        }
    }
};

}  // namespace tilewise::cuda
