// SPDX-License-Identifier: MIT
// The GEMM kernels of blocks whose threads all load and compute: walks over the block's tiles, and for each runs the
// loop over k (mainloop.hpp) and takes the sums out (drain.hpp). With split_k a block computes one part of k, and
// reduce.hpp adds the parts up; with stream_k blocks share tiles (work_order.hpp, stream_k.hpp). Every block waits for the
// kernels before it ahead of its first access to memory, whatever it then has to do: the kernel after this one relies on it.
#pragma once
#include "drain.hpp"
#include "mainloop.hpp"
#include "reduce.hpp"
#include "stream_k.hpp"

namespace tilewise::gpu {

template <class Config, class Core>
struct BlockGemm {
    using Shape = BlockShape<Config>;
    using Loop = Mainloop<Config, Core>;
    using Out = Drain<Config, Core>;
    static constexpr bool kStreams = Config::stream_k != StreamK::off;
    using Walk = typename WalkChoice<kStreams, TileOrder<>>::type;

    template <class T>
    static TILEWISE_DEVICE const void* entry_of(const KernelMatrix& matrix, Index batch) {
        return static_cast<const typename T::Storage*>(matrix.data) + batch * matrix.batch_stride;
    }
    static TILEWISE_DEVICE typename Shape::B columns_of(const KernelArgs& args, const Work& work, Index k_begin) {
        if constexpr (Shape::kPackedB) {
            const PackedB packed = {args.n, args.k, args.batch, Config::tile_n, Config::tile_k, Shape::B::kBytes};
            const Index matrix = args.b.batch_stride == 0 ? 0 : work.tile.batch;
            return {static_cast<const char*>(args.b.data) + packed.tile_offset(matrix, work.tile.tile_n, work.begin)};
        } else {
            return {{entry_of<typename Config::B>(args.b, work.tile.batch), args.n, args.k,
                     Config::b_row ? args.b.row_stride : args.b.col_stride},
                    Index(work.tile.tile_n) * Config::tile_n,
                    k_begin};
        }
    }

    // Of the sums of a tile that blocks share; true where this one has them all.
    struct BlockSync {
        TILEWISE_DEVICE void operator()() const { sync_block(); }
    };
    using Streams = StreamSums<Config::stream_k, StreamShape<Config::threads, 1, Shape::kSumRegisters>,
                               SumOf<typename Config::A>, BlockSync>;
    static TILEWISE_DEVICE bool combine(const KernelArgs& args, const Work& work, const Blocks& blocks, Core& core) {
        if constexpr (kStreams) {
            const Streams streams{
                static_cast<char*>(args.workspace), blocks.count, stream_position(blocks), 0, thread_index(), {}};
            return streams.combine(work, [&](int i) -> SumOf<typename Config::A>& { return core.sum(i); });
        }
        return true;
    }

    static TILEWISE_DEVICE void run_tile(const KernelArgs& args, const Work& work, const Blocks& blocks) {
        const SharedAddress shared = shared_start();
        const TilePlace& place = work.tile;
        const Index row = Index(place.tile_m) * Config::tile_m, col = Index(place.tile_n) * Config::tile_n;
        const Index k_begin = Index(work.begin) * Config::tile_k, k_bound = Index(work.end) * Config::tile_k;
        const Index k_end = k_bound < args.k ? k_bound : args.k;
        const typename Shape::A a({entry_of<typename Config::A>(args.a, place.batch), args.m, args.k,
                                   Config::a_row ? args.a.row_stride : args.a.col_stride},
                                  row, k_begin);
        const typename Shape::B b = columns_of(args, work, k_begin);
        Core core;
        const int steps = work.end - work.begin;
        Loop{a, b, steps, int(k_end - k_begin - Index(steps - 1) * Config::tile_k), shared}.run(core);
        if constexpr (Config::wave_k > 1) {
            if (!core.add_waves(shared)) return;
        }
        if (!combine(args, work, blocks, core)) return;
        const SharedAddress region = shared + core.warp * Out::Region::kBytes;
        Out(args, Index(place.batch), int(place.k_part), args.m, args.n, row, col, region, EvenRows{row},
            EvenColumns{col})
            .run(core);
    }

    // What the first steps of the block's first tile will read along k, towards the cache: this may be done before the kernels ahead
    // of this one have ended, since the cache keeps it up to date.
    template <class T, int kExtent>
    static TILEWISE_DEVICE void prefetch_lines(const KernelMatrix& matrix, Index stride, Index extent, Index first,
                                               Index k_begin, Index k_left, Index batch) {
        constexpr int kPerLine = kLine / T::bytes, kSteps = Shape::kBuffers * Config::tile_k / kPerLine;
        const auto* from = static_cast<const char*>(entry_of<T>(matrix, batch)) + (first * stride + k_begin) * T::bytes;
        TILEWISE_ROLLED
        for (int i = thread_index(); i < kExtent * kSteps; i += Config::threads) {
            const int line = i % kExtent, step = i / kExtent;
            if (first + line < extent && step * kPerLine < k_left) {
                prefetch_line(from + line * stride * T::bytes + step * kLine);
            }
        }
    }
    static constexpr int kLine = 128;  // bytes that come to the cache together
    static TILEWISE_DEVICE void prefetch_first(const KernelArgs& args, const Work& work) {
        const Index k_begin = Index(work.begin) * Config::tile_k, k_left = args.k - k_begin;
        constexpr bool kWholeA =
            Config::tile_k * Config::A::bytes % kLine == 0 && Config::vector_a * Config::A::bytes >= 4;
        constexpr bool kWholeB =
            Config::tile_k * Config::B::bytes % kLine == 0 && Config::vector_b * Config::B::bytes >= 4;
        if constexpr (Config::a_row && Shape::kRing && kWholeA) {
            prefetch_lines<typename Config::A, Config::tile_m>(args.a, args.a.row_stride, args.m,
                                                               Index(work.tile.tile_m) * Config::tile_m, k_begin,
                                                               k_left, work.tile.batch);
        }
        if constexpr (!Config::b_row && Shape::kRing && !Shape::kPackedB && kWholeB) {
            prefetch_lines<typename Config::B, Config::tile_n>(args.b, args.b.col_stride, args.n,
                                                               Index(work.tile.tile_n) * Config::tile_n, k_begin,
                                                               k_left, work.tile.batch);
        }
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        griddep_launch();
        const Blocks blocks{block_index(), block_count()};
        const int steps = int(tile_count(args.k, Config::tile_k));
        const TileOrder<> order(args, Config::tile_m, Config::tile_n);
        Walk walk(order, args, steps, blocks);
        Work work;
        const auto next = [&] { return walk.next(work, [&](const TilePlace&) { return steps; }); };
        bool more = next();
        if (more) prefetch_first(args, work);
        griddep_wait();
        TILEWISE_ROLLED
        while (more) {
            run_tile(args, work, blocks);
            more = next();
            if (more) sync_block();  // the next tile takes the shared memory
        }
    }
};

}  // namespace tilewise::gpu

#define TILEWISE_GPU_KERNELS(Config, Kernel)                                                             \
    extern "C" __global__ void __launch_bounds__(Config::threads, tilewise::gpu::kBlocksPerUnit<Config>) \
        tilewise_kernel(const __grid_constant__ tilewise::KernelArgs args) {                             \
        Kernel::run(args);                                                                               \
    }
