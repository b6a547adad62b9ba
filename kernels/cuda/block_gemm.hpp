// SPDX-License-Identifier: MIT
// The GEMM kernels of blocks whose threads all load and compute: walks over the block's tiles, and for each runs the
// loop over k (mainloop.hpp) and takes the sums out (drain.hpp). With split_k a block computes one part of k, and
// reduce.hpp adds the parts up. Every block waits for the kernels before it ahead of its first access to
// memory, whatever it then has to do: the kernel after this one relies on it.
#pragma once
#include "drain.hpp"
#include "mainloop.hpp"
#include "reduce.hpp"
#include "tile_order.hpp"

namespace tilewise::cuda {

template <class Config, class Core>
struct BlockGemm {
    using Shape = BlockShape<Config>;
    using Loop = Mainloop<Config, Core>;
    using Out = Drain<Config, Core>;

    // Where a part of k begins: parts are cut at multiples of tile_k.
    static TILEWISE_DEVICE Index k_bound(const KernelArgs& args, int part) {
        if (args.split_k <= 1) return part == 0 ? 0 : args.k;
        const Index tiles = tile_count(args.k, Config::tile_k);
        const Index bound = tiles * part / args.split_k * Config::tile_k;
        return bound < args.k ? bound : args.k;
    }
    template <class T>
    static TILEWISE_DEVICE const void* entry_of(const KernelMatrix& matrix, Index batch) {
        return static_cast<const typename T::Storage*>(matrix.data) + batch * matrix.batch_stride;
    }

    static TILEWISE_DEVICE void run_tile(const KernelArgs& args, const TilePlace& place) {
        const SharedAddress shared = shared_start();
        const Index row = Index(place.tile_m) * Config::tile_m, col = Index(place.tile_n) * Config::tile_n;
        const Index k_begin = k_bound(args, place.k_part), k_end = k_bound(args, place.k_part + 1);
        const typename Shape::A a({entry_of<typename Config::A>(args.a, place.batch), args.m,
                                   Config::a_row ? args.a.row_stride : args.a.col_stride},
                                  row, k_begin);
        const typename Shape::B b({entry_of<typename Config::B>(args.b, place.batch), args.n,
                                   Config::b_row ? args.b.row_stride : args.b.col_stride},
                                  col, k_begin);
        Core core;
        const int steps = int(tile_count(k_end - k_begin, Config::tile_k));
        Loop{a, b, steps, int(k_end - k_begin - Index(steps - 1) * Config::tile_k), shared}.run(core);
        const SharedAddress region = shared + core.warp * Out::Region::kBytes;
        Out(args, Index(place.batch), int(place.k_part), row, col, region).run(core);
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        griddep_launch();
        griddep_wait();
        const TileOrder<> order(args, Config::tile_m, Config::tile_n);
        const u32 total = order.total();
        TILEWISE_ROLLED
        for (u32 id = block_index(); id < total; id += block_count()) {
            run_tile(args, order.locate(id));
            if (id + block_count() < total) sync_block();  // the next tile takes the shared memory
        }
    }
};

}  // namespace tilewise::cuda

#define TILEWISE_CUDA_KERNELS(Config, Kernel)                                \
    extern "C" __global__ void __launch_bounds__(Config::threads, 1)         \
        tilewise_kernel(const __grid_constant__ tilewise::KernelArgs args) { \
        Kernel::run(args);                                                   \
    }                                                                        \
    TILEWISE_CUDA_REDUCE(Config)
