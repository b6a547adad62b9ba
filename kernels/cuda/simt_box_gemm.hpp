// SPDX-License-Identifier: MIT
// GEMM in plain fp32 arithmetic (simt_core.hpp) from tiles that tensor copies bring to shared memory, so that copying takes no
// instructions of the warps that multiply: one thread asks for a stage when all warps have released it. Both operands lie
// along k; a line of a tile is 128 bytes, and a deeper tile is several boxes of such lines.
// What must hold: every copy that was asked for is waited for before the block ends.
#pragma once
#include "block_gemm.hpp"
#include "hopper.hpp"
#include "simt_core.hpp"

namespace tilewise::cuda {

inline constexpr int kBoxLineBytes = 128, kBoxLineFloats = kBoxLineBytes / int(sizeof(float));

// A tile as tensor copies leave it.
template <int extent, int depth>
struct BoxTile {
    static_assert(depth % kBoxLineFloats == 0, "whole lines");
    static constexpr bool kAlongK = true;
    static constexpr int kBoxes = depth / kBoxLineFloats, kBoxBytes = extent * kBoxLineBytes;
    static constexpr int kBytes = kBoxes * kBoxBytes, kRegisters = 0, kCount = 0;
    static_assert(kBoxBytes % (kBankChunks * kBoxLineBytes) == 0, "boxes begin where the exchange of chunks does");

    struct Layout {
        using Box = TileLayout<extent, kBoxLineBytes>;
        static constexpr int kChunks = Box::kChunks;
        static TILEWISE_DEVICE u32 offset(u32 line, u32 chunk) {
            return chunk / kChunks * u32(kBoxBytes) + Box::offset(line, chunk % kChunks);
        }
    };
};

template <class Config>
requires requires { Config::boxes; }
struct OperandTiles<Config> {
    using A = BoxTile<Config::tile_m, Config::tile_k>;
    using B = BoxTile<Config::tile_n, Config::tile_k>;
};

template <class Config>
struct SimtBoxGemm {
    using Core = SimtCore<Config>;
    using Shape = BlockShape<Config>;
    using A = typename Shape::A;
    using B = typename Shape::B;
    using Out = Drain<Config, Core>;
    static constexpr int kStages = Shape::kBuffers, kBarriers = kStages * Shape::kBufferBytes, kBarrierBytes = 8;
    // The core fetches from the next tile while it multiplies the last of this one: warps release a stage a step later.
    static constexpr int kAhead = kStages - 2;
    static_assert(kAhead >= 1 && Config::wave_k * Core::kEights <= A::kBoxes * 4 && Core::kEights <= 4);
    static_assert(kBarriers + 2 * kStages * kBarrierBytes <= Config::shared_bytes, "barriers behind the ring");

    const KernelArgs& args;
    const TensorMap &map_a, &map_b;
    SharedAddress shared = shared_start();

    TILEWISE_DEVICE SharedAddress a_buffer(int stage) const { return shared + u32(stage * Shape::kBufferBytes); }
    TILEWISE_DEVICE SharedAddress b_buffer(int stage) const { return a_buffer(stage) + A::kBytes; }
    TILEWISE_DEVICE SharedAddress full(int stage) const { return shared + u32(kBarriers + stage * kBarrierBytes); }
    TILEWISE_DEVICE SharedAddress empty(int stage) const { return full(stage) + u32(kStages * kBarrierBytes); }

    // A place in the ring: each turn around flips the parity that waits look for.
    struct Cursor {
        int stage = 0;
        u32 parity = 0;
        TILEWISE_DEVICE Cursor after(int steps) const {
            return stage + steps >= kStages ? Cursor{stage + steps - kStages, parity ^ 1}
                                            : Cursor{stage + steps, parity};
        }
    };

    // The boxes of a matrix with fewer lines than a tile end with it (src/run/block_grid.cpp).
    template <int kLines>
    static TILEWISE_DEVICE u32 copied_lines(Index extent) {
        return u32(extent < kLines ? extent : kLines);
    }
    // One step of k of a tile, by one thread.
    TILEWISE_DEVICE void copy(const TilePlace& tile, int step, const Cursor& to) const {
        barrier_wait(empty(to.stage), to.parity ^ 1);
        const u32 lines =
            A::kBoxes * copied_lines<Config::tile_m>(args.m) + B::kBoxes * copied_lines<Config::tile_n>(args.n);
        barrier_expect(full(to.stage), lines * kBoxLineBytes);
        // One matrix may serve the whole batch.
        const int batch_a = args.a.batch_stride ? int(tile.batch) : 0,
                  batch_b = args.b.batch_stride ? int(tile.batch) : 0;
        TILEWISE_UNROLL
        for (int i = 0; i < A::kBoxes; ++i) {
            const int k = step * Config::tile_k + i * kBoxLineFloats;
            copy_box(a_buffer(to.stage) + u32(i * A::kBoxBytes), map_a, full(to.stage), k,
                     int(tile.tile_m) * Config::tile_m, batch_a, kKeepNormal);
            copy_box(b_buffer(to.stage) + u32(i * B::kBoxBytes), map_b, full(to.stage), k,
                     int(tile.tile_n) * Config::tile_n, batch_b, kKeepNormal);
        }
    }

    TILEWISE_DEVICE void multiply(Core& core, const Work& work, Cursor& reading) const {
        if (thread_index() == 0) {
            TILEWISE_ROLLED
            for (int s = 0; s < kAhead && work.begin + s < work.end; ++s)
                copy(work.tile, work.begin + s, reading.after(s));
        }
        sync_warp();
        barrier_wait(full(reading.stage), reading.parity);
        core.fetch_first(a_buffer(reading.stage), b_buffer(reading.stage));
        TILEWISE_ROLLED
        for (int step = work.begin; step < work.end; ++step) {
            if (thread_index() == 0 && step + kAhead < work.end) copy(work.tile, step + kAhead, reading.after(kAhead));
            sync_warp();
            const Cursor next = reading.after(1);
            core.multiply_fetched(a_buffer(reading.stage), b_buffer(reading.stage), a_buffer(next.stage),
                                  b_buffer(next.stage), [&] {
                                      if (step > work.begin) release(reading.after(kStages - 1).stage);
                                      if (step + 1 < work.end) barrier_wait(full(next.stage), next.parity);
                                  });
            reading = next;
        }
        release(reading.after(kStages - 1).stage);
    }
    // By every warp, when none of its lanes reads the stage any more.
    TILEWISE_DEVICE void release(int stage) const {
        sync_warp();
        if (lane_index() == 0) barrier_arrive(empty(stage));
    }

    TILEWISE_DEVICE void run_tile(const Work& work, Cursor& reading) const {
        Core core;
        multiply(core, work, reading);
        sync_block();  // sums leave by the ring
        if constexpr (Config::wave_k > 1) {
            if (!core.add_waves(shared)) return;
        }
        const TilePlace& place = work.tile;
        const Index row = Index(place.tile_m) * Config::tile_m, col = Index(place.tile_n) * Config::tile_n;
        const SharedAddress region = shared + core.warp * Out::Region::kBytes;
        Out(args, Index(place.batch), int(place.k_part), args.m, row, col, region, EvenRows{row}).run(core);
    }

    TILEWISE_DEVICE void run() const {
        griddep_launch();
        if (thread_index() == 0) {
            prefetch_map(map_a), prefetch_map(map_b);
            TILEWISE_ROLLED
            for (int i = 0; i < kStages; ++i) {
                barrier_init(full(i), 1);
                barrier_init(empty(i), Shape::kWarps);
            }
            barrier_init_fence();
        }
        const Blocks blocks{block_index(), block_count()};
        const int steps = int(tile_count(args.k, Config::tile_k));
        const TileOrder<> order(args, Config::tile_m, Config::tile_n);
        TileWalk<TileOrder<>> walk(order, args, steps, blocks);
        Work work;
        const auto next = [&] { return walk.next(work, [&](const TilePlace&) { return steps; }); };
        bool more = next();
        sync_block();
        griddep_wait();
        Cursor reading;
        TILEWISE_ROLLED
        while (more) {
            run_tile(work, reading);
            more = next();
            if (more) {
                async_proxy_fence();  // sums were where copies go next
                sync_block();
            }
        }
    }
};

}  // namespace tilewise::cuda

#define TILEWISE_CUDA_SIMT_BOX_GEMM(Config)                                                                           \
    extern "C" __global__ void __launch_bounds__(Config::threads, tilewise::cuda::kBlocksPerUnit<Config>)             \
        tilewise_kernel(                                                                                              \
            const __grid_constant__ tilewise::KernelArgs args, const __grid_constant__ tilewise::cuda::TensorMap a,   \
            const __grid_constant__ tilewise::cuda::TensorMap b, const __grid_constant__ tilewise::cuda::TensorMap) { \
        tilewise::cuda::SimtBoxGemm<Config>{args, a, b}.run();                                                        \
    }                                                                                                                 \
    TILEWISE_CUDA_REDUCE(Config)
