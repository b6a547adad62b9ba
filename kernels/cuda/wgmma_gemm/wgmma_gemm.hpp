// SPDX-License-Identifier: MIT
// GEMM on Hopper's warpgroup instructions: TMA fills a ring of shared-memory stages (wgmma_feed.hpp), one or two warpgroups
// multiply, and finished tiles leave through TMA while the next ones are being computed.
//
// Tile walk   Blocks (clusters of blocks) walk over the tiles of C in the order of tile_order.hpp until none are left; with
//             split_k every part of k is a tile of its own whose sums go to the workspace; with stream_k blocks share
//             tiles (work_order.hpp) and their sums meet in the workspace (stream_k.hpp); with cluster_k the blocks of a
//             cluster share one tile and add up in shared memory (wgmma_cluster_store.hpp).
// Shared      `stages` x { A tile, B tile } of 128-byte lines in the 128-byte swizzle: an operand that is contiguous along k
//             has a line for each row (or column); one of 16 bits that is contiguous along m (or n) has, for each 64 rows,
//             a line for each k. With tf32x3 as much again for what tf32 leaves out (wgmma_halves.hpp). Then for each
//             computing warpgroup two buffers of 64 lines for its results, then the barriers.
// Registers   Each computing warpgroup holds its rows of the tile in 32 bits: tile_m / wave_m x tile_n / 128 a thread; twice
//             where the sums of two stages are added to those before in fp32 (8-bit floats, strict).
// Pipelines   compv6: a warp of its own issues the copies; the warpgroups share each tile, by rows. compv5: the same, but each
//             takes whole tiles, in turns, so that the results of one leave while the other multiplies. comp_async and mem: a
//             thread of the first warpgroup issues the copies between its products. basic_async_v1: the same with one stage,
//             so that copies and products alternate. preshuffle: the same ring, from a B that was packed ahead (pack_b.hpp).
// Bytes       A tile reads (tile_m + tile_n) x k elements through the L2 cache, of which blocks of a cluster share
//             one operand: cluster_m blocks read the same B once, cluster_n blocks the same A.
// Room        Blocks of which two share a unit (blocks_per_unit) have one tile each; where a unit has but one, a block of the next
//             kernel starts beside it when its last copies are on their way, and brings its first operands to the L2 cache.
// All threads wait for the kernels before them (griddep_wait) before anything in global memory is touched, but for that.
#pragma once
#include "../../gpu/pack.hpp"
#include "../../gpu/pack_b.hpp"
#include "../../gpu/reduce.hpp"
#include "../../gpu/stream_k.hpp"
#include "wgmma_cluster_store.hpp"
#include "wgmma_feed.hpp"
#include "wgmma_halves.hpp"
#include "wgmma_source.hpp"
#include "wgmma_store.hpp"

namespace tilewise::cuda::wgmma_gemm {

template <class Config, class OperandSource = MatrixSource<Config>>
struct WgmmaGemm {
    using Shape = WgmmaShape<Config>;
    using Source = OperandSource;
    using A = typename Shape::A;
    using B = typename Shape::B;
    using Sums = typename Shape::Sums;
    using Store = WgmmaStore<Config, typename Source::Places>;
    using Place = WgmmaPlace;

    const KernelArgs& args;
    const TensorMap &map_a, &map_b, &map_c;
    unsigned shared;  // its address

    using Ring = WgmmaRing<Shape>;
    using Cursor = typename Ring::Cursor;
    using Feed = WgmmaFeed<Config, Source>;
    using Halves = WgmmaHalves<Config, Source>;
    using Walk = typename Shape::Walk;
    using Order = typename Shape::Order;

    TILEWISE_DEVICE Ring ring() const { return {shared}; }

    TILEWISE_DEVICE Walk walk(const Order& order) const {
        // Tiles that are shared out by steps have all the same number of them.
        const int steps = Shape::kStreams ? Source::steps(args, TilePlace{}) : 0;
        return {order, args, steps, Blocks{block_index(), block_count()}};
    }
    TILEWISE_DEVICE Feed feed(const Order& order) const {
        return {args, Source(args, map_a, map_b), shared, walk(order)};
    }

    // One thread of the block, which copies all there is.
    TILEWISE_DEVICE void copy_tiles(const Order& order) const {
        Feed feed = this->feed(order);
        while (feed.more) feed.issue();
        if constexpr (Shape::kLeavesRoom) griddep_launch();
        if constexpr (Shape::kCluster > 1) feed.drain();
    }
    // Fetches what the first stages will hold into the cache, no further: the kernels ahead of this one may not have ended.
    TILEWISE_DEVICE void prefetch_first(const Order& order) const {
        Walk walk = this->walk(order);
        Work work;
        typename Source::Steps steps(args);
        if (!walk.next(work, steps)) return;
        Source source(args, map_a, map_b);
        source.begin(work.tile, work.begin);
        const int end = work.end - work.begin < Shape::kStages ? work.end : work.begin + Shape::kStages;
        for (int step = work.begin; step < end; ++step) source.prefetch(step);
    }

    // --- computing --------------------------------------------------------------------------------------------------

    // Rows r of 64 are a block of 8 KB in either orientation, and so are 64 columns along n.
    static constexpr unsigned kBlockBytes = 64 * Shape::kDepthBytes;
    static constexpr unsigned kLeadingA = Shape::kDepth * Shape::kRowLineBytes,
                              kLeadingB = Shape::kDepth * Shape::kColumnLineBytes;
    // For k one instruction further: 32 bytes along a line, or (of 16 bits) 16 lines.
    static constexpr unsigned kStepBytes = Shape::kStepBytes;
    static constexpr bool kThree = Shape::kThree;
    static constexpr unsigned long long kRests = Shape::kRests / 16;  // descriptors count in 16 bytes
    static constexpr unsigned kStepA = Shape::kRowsAlongK ? kStepBytes : 16 * Shape::kRowLineBytes;
    static constexpr unsigned kStepB = Shape::kColumnsAlongK ? kStepBytes : 16 * Shape::kColumnLineBytes;

    // A group of products that can be waited for, `depth` of them along k of each line; what a line holds behind them is not to
    // be added. A branch for each depth, from fence to commit: products on both sides of a branch are groups of their own.
    // With several branches, addresses are counted once for a warp, a third of the instructions; with one that is no gain.
    TILEWISE_DEVICE void multiply_stage(Sums& sums, int stage_index, int own_rows, int depth, bool keep) const {
        const int stage = Source::kTrims ? uniform(stage_index) : stage_index;
        const unsigned a = shared + static_cast<unsigned>(stage * Shape::kStageBytes + own_rows * Shape::kDepthBytes);
        const unsigned b = shared + static_cast<unsigned>(stage * Shape::kStageBytes + Shape::kBytesA);
        const unsigned long long at_a = operand_at<Shape::kRowLineBytes>(a, kLeadingA, 8 * Shape::kRowLineBytes);
        const unsigned long long at_b = operand_at<Shape::kColumnLineBytes>(b, kLeadingB, 8 * Shape::kColumnLineBytes);
        if constexpr (!Source::kTrims) {
            multiply_taps<Shape::kSteps>(sums, at_a, at_b, keep);
        } else if (depth == Shape::kSteps) {
            multiply_taps<Shape::kSteps>(sums, at_a, at_b, keep);
        } else if (Shape::kSteps == 2 || depth == 1) {
            multiply_taps<1>(sums, at_a, at_b, keep);
        } else if (depth == 2) {
            multiply_taps<2>(sums, at_a, at_b, keep);
        } else {
            multiply_taps<3>(sums, at_a, at_b, keep);
        }
    }

    template <int kDeep>
    TILEWISE_DEVICE void multiply_taps(Sums& sums, unsigned long long at_a, unsigned long long at_b, bool keep) const {
        wgmma_fence();
        if constexpr (Shape::kTaps == 1) {
            multiply_lines<kDeep>(sums, at_a, at_b, keep);
        } else {
            // Each tap reads the same lines, shifted. Descriptors count in 16 bytes.
            const auto shift = static_cast<unsigned long long>(Source::tap_shift(args) * (Shape::kRowLineBytes / 16));
            TILEWISE_UNROLL
            for (int tap = 0; tap < Shape::kTaps; ++tap)
                multiply_lines<kDeep>(sums, at_a + tap * shift, at_b + tap * (Shape::kTapBytes / 16), keep || tap > 0);
        }
        wgmma_commit();
    }

    // Products of one line of k.
    template <int kDeep>
    TILEWISE_DEVICE void multiply_lines(Sums& sums, unsigned long long at_a, unsigned long long at_b, bool keep) const {
        TILEWISE_UNROLL
        for (int k = 0; k < kDeep; ++k) {
            TILEWISE_UNROLL
            for (int r = 0; r < Shape::kRepeats; ++r) {
                const unsigned long long from_a = at_a + (k * kStepA + r * kBlockBytes) / 16;
                const unsigned long long from_b = at_b + k * kStepB / 16;
                constexpr int kTransA = Shape::kRowsAlongK ? 0 : 1, kTransB = Shape::kColumnsAlongK ? 0 : 1;
                // The rests first, since they are small.
                if constexpr (Shape::kThree) {
                    wgmma<A, B, Shape::kTileN, kTransA, kTransB>(sums[r], from_a + kRests, from_b, keep || k > 0);
                    wgmma<A, B, Shape::kTileN, kTransA, kTransB>(sums[r], from_a, from_b + kRests, true);
                }
                // Swapped, the operand of the rows is B.
                if constexpr (Shape::kSwapped) {
                    wgmma<B, A, Shape::kTileN, kTransA, kTransB>(sums[r], from_a, from_b, keep || k > 0 || kThree);
                } else {
                    wgmma<A, B, Shape::kTileN, kTransA, kTransB>(sums[r], from_a, from_b, keep || k > 0 || kThree);
                }
            }
        }
    }

    TILEWISE_DEVICE void release(int stage) const {
        const int lane = lane_index();
        if constexpr (Shape::kCluster == 1) {
            if (lane == 0) barrier_arrive(ring().empty(stage));
        } else {
            if (lane < Shape::kCluster) barrier_arrive_remote(ring().empty(stage), lane);
        }
    }

    // The sums of one tile. `refill` follows every release of a stage.
    template <class Refill>
    TILEWISE_DEVICE void multiply(Sums& sums, const Work& work, int own_rows, Cursor& at, const Place& me,
                                  Refill&& refill) const {
        // Without a branch around the products, which would take twice the registers.
        if constexpr (Source::kMayBeEmpty) {
            each_sum([&](int r, int i) { sums[r][i] = 0; });
            if (Shape::kTakesTurns && work.begin == work.end) next_turn_to_multiply(me);
        }
        if constexpr (Shape::kPromotes) {
            multiply_promoted(sums, work, own_rows, at, me, refill);
        } else {
            multiply_through(sums, work, own_rows, at, me, refill);
        }
    }

    // Adds up the sums of every two stages in fp32; the other warpgroup keeps the matrix unit busy meanwhile.
    template <class Refill>
    TILEWISE_DEVICE void multiply_promoted(Sums& sums, const Work& work, int own_rows, Cursor& at, const Place& me,
                                           Refill&& refill) const {
        each_sum([&](int r, int i) { sums[r][i] = 0; });
        typename Source::Depths depths(args, work.begin);
        for (int step = work.begin; step < work.end;) {
            Sums part;
            pin_all(part);
            int last = issue_stage(part, own_rows, depths.next(), at, false, ++step == work.end, me);
            if (Shape::kStages > 1 && step < work.end) {
                const int next = issue_stage(part, own_rows, depths.next(), at, true, ++step == work.end, me);
                wgmma_wait<1>();
                release(last);
                refill();
                last = next;
            }
            wgmma_wait<0>();
            pin_all(part);
            release(last);
            refill();
            each_sum([&](int r, int i) { sums[r][i] += part[r][i]; });
        }
    }
    // Returns the stage, which is in use until its products have ended.
    TILEWISE_DEVICE int issue_stage(Sums& part, int own_rows, int depth, Cursor& at, bool keep, bool is_last,
                                    const Place& me) const {
        const int stage = at.stage;
        barrier_wait(ring().ready(stage), at.parity);
        multiply_stage(part, stage, own_rows, depth, keep);
        if (Shape::kTakesTurns && is_last) next_turn_to_multiply(me);
        at.advance();
        return stage;
    }

    // A stage is released when the products of the next one are under way, or have ended where there is only one.
    template <class Refill>
    TILEWISE_DEVICE void multiply_through(Sums& sums, const Work& work, int own_rows, Cursor& at, const Place& me,
                                          Refill&& refill) const {
        constexpr bool kOverlaps = Shape::kStages > 1;
        int previous = 0;
        typename Source::Depths depths(args, work.begin);
        for (int step = work.begin; step < work.end; ++step, at.advance()) {
            barrier_wait(ring().ready(at.stage), at.parity);
            pin_all(sums);
            multiply_stage(sums, at.stage, own_rows, depths.next(), Source::kMayBeEmpty || step > work.begin);
            pin_all(sums);
            if (Shape::kTakesTurns && step + 1 == work.end) next_turn_to_multiply(me);
            if (!kOverlaps || step > work.begin) {
                wgmma_wait<kOverlaps ? 1 : 0>();
                release(kOverlaps ? previous : at.stage);
                refill();
            }
            previous = at.stage;
        }
        wgmma_wait<0>();
        pin_all(sums);
        if (kOverlaps && work.end > work.begin) {
            release(previous);
            refill();
        }
    }

    template <class F>
    static TILEWISE_DEVICE void each_sum(F&& f) {
        TILEWISE_UNROLL
        for (int r = 0; r < Shape::kRepeats; ++r) {
            TILEWISE_UNROLL
            for (int i = 0; i < Shape::kOwnSums; ++i) f(r, i);
        }
    }
    static TILEWISE_DEVICE void pin_all(Sums& sums) {
        each_sum([&](int r, int i) { pin(sums[r][i]); });
    }

    TILEWISE_DEVICE Store store() const { return {args, map_c, shared, typename Source::Places(args)}; }

    // Where the sums of tiles meet that blocks share.
    struct WarpgroupSync {
        Place me;
        TILEWISE_DEVICE void operator()() const { me.sync(); }
    };
    using Streams = StreamSums<Config::stream_k, StreamShape<128, Shape::kWaves, Shape::kRepeats * Shape::kOwnSums>,
                               typename Shape::Sum, WarpgroupSync>;
    TILEWISE_DEVICE bool combine(Sums& sums, const Work& work, const Place& me) const {
        if constexpr (Shape::kStreams) {
            const Blocks blocks{block_index(), block_count()};
            const Streams streams{
                static_cast<char*>(args.workspace), blocks.count, stream_position(blocks), me.wave, me.thread, {me}};
            return streams.combine(
                work, [&](int i) -> typename Shape::Sum& { return sums[i / Shape::kOwnSums][i % Shape::kOwnSums]; });
        }
        return true;
    }

    // `refill` asks for the next stage, after each one that is released.
    template <class Refill>
    TILEWISE_DEVICE void compute_tiles(const Order& order, const Place& me, Refill&& refill) const {
        const bool boxes = Shape::kStoresBoxes && args.split_k == 1 &&
                           finishes_in_registers<ChainOf<Config>, typename Shape::Out, typename Shape::Sum, 2>(args);
        const bool rows = Shape::kStoresRows && args.split_k == 1 &&
                          finishes_in_registers<ChainOf<Config>, typename Shape::Out, typename Shape::Sum>(args);
        Store store = this->store();
        const bool in_boxes = store.places.in_boxes();
        Walk walk = this->walk(order);
        Work work;
        Cursor at;
        int turn = 1;
        unsigned buffer = 0;
        typename Source::Steps steps(args);
        while (walk.next(work, steps)) {
            turn ^= 1;
            if (Shape::kTakesTurns && turn != me.wave) {
                at.skip(work.end - work.begin);
                continue;
            }
            Sums sums;
            // Products need no sums to begin with, but where they are also added to elsewhere, registers that nobody has
            // written count as in use all the time, and there are too few for the matrix unit to go on by itself.
            if constexpr (Shape::kStreams) each_sum([&](int r, int i) { sums[r][i] = 0; });
            const int own_rows = Shape::kTakesTurns ? 0 : me.wave * Shape::kWaveRows;
            const int row = Shape::first_row(work.tile) + own_rows;
            store.places.begin(work.tile);
            const typename Store::Bias bias = store.read_bias(work.tile);
            store.prefetch_tensors(work.tile, row, me.thread);
            if constexpr (Shape::kTakesTurns) my_turn_to_multiply(me);
            multiply(sums, work, own_rows, at, me, refill);
            if (!combine(sums, work, me)) continue;
            if constexpr (Shape::kLeavesRoom && !Shape::kSumsInCluster) {
                constexpr int kAllComputing = 6;                 // a named barrier
                named_sync(kAllComputing, 128 * Shape::kWaves);  // nobody reads the ring any more
            }
            if constexpr (Shape::kSumsInCluster) {
                WgmmaClusterStore<Config>{args, shared}.store(sums, work.tile, me);
            } else if (boxes && in_boxes) {
                if constexpr (Shape::kStoresBoxes) store.store_boxes(sums, work.tile, row, me, bias, buffer);
            } else if (boxes) {
                if constexpr (Shape::kStoresBoxes && Source::Places::kMoves)
                    store.store_lines(sums, work.tile, row, me, bias, buffer);
            } else if (rows) {
                if constexpr (Shape::kStoresRows) store.store_rows(sums, work.tile, row, me, buffer);
            } else {
                store.store_elements(sums, work.tile, row, me);
            }
        }
        if (me.thread == 0) store_wait_read<0>();
    }

    TILEWISE_DEVICE void compute_and_copy(const Order& order, const Place& me) const {
        Feed feed = this->feed(order);
        const bool copies = me.wave == 0 && me.thread == 0;
        if (copies) {
            for (int i = 0; i < Shape::kStages; ++i) feed.issue();
        }
        sync_warp();
        compute_tiles(order, me, [&] {
            if (copies) feed.issue();
            sync_warp();
        });
        if constexpr (Shape::kCluster > 1) cluster_sync();  // no stage is released to a block that has gone
    }

    // Two warpgroups that take turns: one may issue products only while the other does not, so that each tile's stages are
    // used up in the order they come in; the last products need not have ended. Barriers 4 and 5 say "warpgroup 0 (1) may go".
    static TILEWISE_DEVICE void my_turn_to_multiply(const Place& me) { named_sync(4 + me.wave, 256); }
    static TILEWISE_DEVICE void next_turn_to_multiply(const Place& me) { named_arrive(4 + (me.wave ^ 1), 256); }

    TILEWISE_DEVICE void run() const {
        const Order order = Source::order(args);
        if (thread_index() == 0) {
            prefetch_map(map_a);
            if constexpr (!Shape::kPackedB) prefetch_map(map_b);
            if constexpr (Shape::kStoresBoxes) prefetch_map(map_c);
            // Every computing warp of every block of the cluster releases a stage; with turns, those of one warpgroup.
            constexpr unsigned kReleases = 4 * (Shape::kTakesTurns ? 1 : Shape::kWaves) * Shape::kCluster;
            for (int i = 0; i < Shape::kStages; ++i) {
                barrier_init(ring().full(i), 1);
                barrier_init(ring().empty(i), kReleases);
                if constexpr (Shape::kThree) barrier_init(ring().halves(i), Halves::kWarps);
            }
            barrier_init_fence();
        }
        if constexpr (Shape::kCluster > 1) {
            cluster_sync();
        } else {
            sync_block();
        }
        // Where a block of the next kernel finds room beside this one, it should start when the last copies are on their way, so
        // that its own follow them; elsewhere, when this one has ended.
        if constexpr (Shape::kLeavesRoom) {
            if (thread_index() == 0) prefetch_first(order);
        } else {
            griddep_launch();
        }
        griddep_wait();
        const int thread = static_cast<int>(thread_index()) - Shape::kFirstComputing;
        const Place me{Source::kTrims ? uniform(thread / 128) : thread / 128, thread % 128};
        if constexpr (Shape::kCopiesAside) {
            if (thread < 0 || thread >= 128 * Shape::kWaves) {
                if constexpr (Shape::kHandsOver) give_registers<Config::copy_registers>();
                if (Shape::kLeavesRoom || warp_index() == 0) {
                    if (elect_one()) copy_tiles(order);
                } else if constexpr (Shape::kThree) {
                    Halves{args, ring(), static_cast<int>(thread_index()) - 32}.run(walk(order));
                }
                return;
            }
            if constexpr (Shape::kHandsOver) take_registers<Config::compute_registers>();
            // The second warpgroup lets the first go first.
            if constexpr (Shape::kTakesTurns) {
                if (me.wave == 1) named_arrive(4, 256);
            }
            compute_tiles(order, me, [] {});
        } else {
            compute_and_copy(order, me);
        }
    }
};

}  // namespace tilewise::cuda::wgmma_gemm

#define TILEWISE_CUDA_WGMMA_GEMM(Config)                                                                        \
    extern "C" __global__ void __launch_bounds__(Config::threads, tilewise::gpu::kBlocksPerUnit<Config>)        \
        TILEWISE_KERNEL_SYMBOL(const __grid_constant__ tilewise::KernelArgs args,                               \
                               const __grid_constant__ tilewise::cuda::TensorMap a,                             \
                               const __grid_constant__ tilewise::cuda::TensorMap b,                             \
                               const __grid_constant__ tilewise::cuda::TensorMap c) {                           \
        const tilewise::cuda::wgmma_gemm::WgmmaGemm<Config> gemm{args, a, b, c, tilewise::gpu::shared_start()}; \
        gemm.run();                                                                                             \
    }
