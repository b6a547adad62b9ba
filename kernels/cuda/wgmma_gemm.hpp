// SPDX-License-Identifier: MIT
// GEMM on Hopper's warpgroup instructions: TMA fills a ring of shared-memory stages, one warp issues the copies, one or two
// warpgroups multiply, and finished tiles leave through TMA while the next ones are being computed.
//
// Tile walk   Blocks (clusters of blocks) walk over the tiles of C in the order of tile_order.hpp until none are left; with
//             split_k every part of k is a tile of its own whose sums go to the workspace, or, with cluster_k, the work
//             of a block in a cluster that has one tile.
// Shared      `stages` x { A tile, B tile } of 128-byte lines in the 128-byte swizzle: an operand that is contiguous along k
//             has a line for each row (or column); one of 16 bits that is contiguous along m (or n) has, for each 64 rows,
//             a line for each k. Then for each computing warpgroup two buffers of 64 lines for its results, then the barriers.
// Registers   Each computing warpgroup holds its rows of the tile in 32 bits: tile_m / wave_m x tile_n / 128 a thread; twice
//             where the sums of two stages are added to those before in fp32 (8-bit floats, strict).
// Pipelines   compv6: the warpgroups share each tile, by rows. compv5: each takes whole tiles, in turns, so that the results
//             of one leave while the other multiplies.
// Bytes       A tile reads (tile_m + tile_n) x k elements through the L2 cache, of which blocks of a cluster share
//             one operand: cluster_m blocks read the same B once, cluster_n blocks the same A.
// All threads wait for the kernels before them (griddep_wait) before anything in global memory is touched.
#pragma once
#include "pack.hpp"
#include "reduce.hpp"
#include "wgmma_cluster_store.hpp"
#include "wgmma_store.hpp"

namespace tilewise::cuda {

template <class Config>
struct WgmmaGemm {
    using Shape = WgmmaShape<Config>;
    using A = typename Shape::A;
    using B = typename Shape::B;
    using Sums = typename Shape::Sums;
    using Store = WgmmaStore<Config>;
    using Place = WgmmaPlace;

    const KernelArgs& args;
    const TensorMap &map_a, &map_b, &map_c;
    unsigned shared;  // its address

    TILEWISE_DEVICE unsigned full(int stage) const { return shared + Shape::kBarriers + stage * 16; }
    TILEWISE_DEVICE unsigned empty(int stage) const { return shared + Shape::kBarriers + stage * 16 + 8; }

    // Where a role is in the ring: each turn around flips the parity that its waits look for.
    struct Cursor {
        int stage = 0;
        unsigned parity = 0;
        TILEWISE_DEVICE void advance() {
            if (++stage == Shape::kStages) {
                stage = 0;
                parity ^= 1;
            }
        }
        TILEWISE_DEVICE void skip(int steps) {
            stage += steps;
            parity ^= static_cast<unsigned>(stage / Shape::kStages) & 1;
            stage %= Shape::kStages;
        }
    };

    struct Range {
        int begin, end;  // in tiles of k
    };
    TILEWISE_DEVICE Range k_range(int part) const {
        const int steps = static_cast<int>((args.k + Shape::kTileK - 1) / Shape::kTileK);
        return {static_cast<int>(static_cast<Index>(steps) * part / args.split_k),
                static_cast<int>(static_cast<Index>(steps) * (part + 1) / args.split_k)};
    }

    // The first id of this block's tiles, and its part of a tile's k. The blocks of a cluster that share out k have one tile.
    TILEWISE_DEVICE u32 first_id() const {
        return Shape::kSumsInCluster ? block_index() / static_cast<u32>(args.split_k) : block_index();
    }
    TILEWISE_DEVICE Range range_of(const TilePlace& tile) const {
        return k_range(static_cast<int>(Shape::kSumsInCluster ? cluster_rank() : tile.k_part));
    }

    // --- copying ----------------------------------------------------------------------------------------------------

    // One operand of a stage: `kExtent` rows (or columns) from `first`. Blocks of the cluster that use the same tile each
    // copy a share of its lines to all of them.
    template <int kExtent, bool kAlongK, int kSharers>
    TILEWISE_DEVICE void copy_operand(const TensorMap& map, unsigned to, unsigned barrier, int first, int k, int batch,
                                      int share, unsigned short blocks) const {
        constexpr int kBoxes = kAlongK ? 1 : kExtent / Shape::kLine;
        constexpr int kLines = (kAlongK ? kExtent : Shape::kTileK) / kSharers;
        const int line = share * kLines;
        TILEWISE_UNROLL
        for (int box = 0; box < kBoxes; ++box) {
            const unsigned at = to + static_cast<unsigned>((box * Shape::kTileK + line) * Shape::kLineBytes);
            const int x = kAlongK ? k : first + box * Shape::kLine;
            const int y = kAlongK ? first + line : k + line;
            if constexpr (kSharers == 1) {
                copy_box(at, map, barrier, x, y, batch, kKeepNormal);
            } else {
                copy_box_multicast(at, map, barrier, x, y, batch, blocks, kKeepNormal);
            }
        }
    }

    TILEWISE_DEVICE void copy_tiles(const TileOrder<Shape::kClusterM, Shape::kClusterN>& order) const {
        const unsigned rank = Shape::kCluster > 1 ? cluster_rank() : 0;
        const int in_m = static_cast<int>(rank) % Shape::kClusterM, in_n = static_cast<int>(rank) / Shape::kClusterM;
        // The blocks in my column of the cluster share B with me, those in my row share A.
        const auto sharing_b = static_cast<unsigned short>(((1u << Shape::kClusterM) - 1) << (in_n * Shape::kClusterM));
        unsigned short sharing_a = 0;
        TILEWISE_UNROLL
        for (int i = 0; i < Shape::kClusterN; ++i)
            sharing_a |= static_cast<unsigned short>(1u << (i * Shape::kClusterM + in_m));
        Cursor at;
        for (u32 id = first_id(); id < order.total(); id += block_count()) {
            const TilePlace tile = order.locate(id);
            const int row = Shape::first_row(tile), column = Shape::first_column(tile);
            // One matrix may serve the whole batch.
            const int batch_a = args.a.batch_stride ? static_cast<int>(tile.batch) : 0;
            const int batch_b = args.b.batch_stride ? static_cast<int>(tile.batch) : 0;
            const int batch_rows = Shape::kSwapped ? batch_b : batch_a,
                      batch_columns = Shape::kSwapped ? batch_a : batch_b;
            const Range range = range_of(tile);
            for (int step = range.begin; step < range.end; ++step, at.advance()) {
                barrier_wait(empty(at.stage), at.parity ^ 1);
                barrier_expect(full(at.stage), Shape::kStageBytes);
                const unsigned to = shared + static_cast<unsigned>(at.stage * Shape::kStageBytes);
                copy_operand<Shape::kTileM, Shape::kRowsAlongK, Shape::kClusterN>(
                    Shape::kSwapped ? map_b : map_a, to, full(at.stage), row, step * Shape::kTileK, batch_rows, in_n,
                    sharing_a);
                copy_operand<Shape::kTileN, Shape::kColumnsAlongK, Shape::kClusterM>(
                    Shape::kSwapped ? map_a : map_b, to + Shape::kBytesA, full(at.stage), column, step * Shape::kTileK,
                    batch_columns, in_m, sharing_b);
            }
        }
        // The last stages must not be released to a block that has gone: wait until all of them have been.
        if constexpr (Shape::kCluster > 1) {
            for (int i = 0; i < Shape::kStages; ++i, at.advance()) barrier_wait(empty(at.stage), at.parity ^ 1);
        }
    }

    // --- computing --------------------------------------------------------------------------------------------------

    // Rows r of 64 are a block of 8 KB in either orientation, and so are 64 columns along n.
    static constexpr unsigned kBlockBytes = 64 * Shape::kLineBytes;
    // For k one instruction further: 32 bytes along a line, or (of 16 bits) 16 lines.
    static constexpr unsigned kStepBytes = 32;
    static constexpr unsigned kStepA = Shape::kRowsAlongK ? kStepBytes : 16 * Shape::kLineBytes;
    static constexpr unsigned kStepB = Shape::kColumnsAlongK ? kStepBytes : 16 * Shape::kLineBytes;

    TILEWISE_DEVICE void multiply_stage(Sums& sums, int stage, int own_rows, bool keep) const {
        const unsigned a = shared + static_cast<unsigned>(stage * Shape::kStageBytes + own_rows * Shape::kLineBytes);
        const unsigned b = shared + static_cast<unsigned>(stage * Shape::kStageBytes + Shape::kBytesA);
        const unsigned long long at_a = operand_at(a, kBlockBytes, 1024), at_b = operand_at(b, kBlockBytes, 1024);
        TILEWISE_UNROLL
        for (int k = 0; k < Shape::kLineBytes / static_cast<int>(kStepBytes); ++k) {
            TILEWISE_UNROLL
            for (int r = 0; r < Shape::kRepeats; ++r) {
                // Descriptors count in 16 bytes.
                const unsigned long long from_a = at_a + (k * kStepA + r * kBlockBytes) / 16;
                const unsigned long long from_b = at_b + k * kStepB / 16;
                constexpr int kTransA = Shape::kRowsAlongK ? 0 : 1, kTransB = Shape::kColumnsAlongK ? 0 : 1;
                // Swapped, the operand of the rows is B.
                if constexpr (Shape::kSwapped) {
                    wgmma<B, A, Shape::kTileN, kTransA, kTransB>(sums[r], from_a, from_b, keep || k > 0);
                } else {
                    wgmma<A, B, Shape::kTileN, kTransA, kTransB>(sums[r], from_a, from_b, keep || k > 0);
                }
            }
        }
    }

    TILEWISE_DEVICE void release(int stage) const {
        const int lane = lane_index();
        if constexpr (Shape::kCluster == 1) {
            if (lane == 0) barrier_arrive(empty(stage));
        } else {
            if (lane < Shape::kCluster) barrier_arrive_remote(empty(stage), lane);
        }
    }

    // The sums of one tile.
    TILEWISE_DEVICE void multiply(Sums& sums, Range range, int own_rows, Cursor& at, const Place& me) const {
        if constexpr (Shape::kPromotes) {
            multiply_promoted(sums, range, own_rows, at, me);
        } else {
            multiply_through(sums, range, own_rows, at, me);
        }
    }

    // Adds up the sums of every two stages in fp32; the other warpgroup keeps the matrix unit busy meanwhile.
    TILEWISE_DEVICE void multiply_promoted(Sums& sums, Range range, int own_rows, Cursor& at, const Place& me) const {
        each_sum([&](int r, int i) { sums[r][i] = 0; });
        for (int step = range.begin; step < range.end;) {
            Sums part;
            pin_all(part);
            int last = issue_stage(part, own_rows, at, false, ++step == range.end, me);
            if (step < range.end) {
                const int next = issue_stage(part, own_rows, at, true, ++step == range.end, me);
                wgmma_wait<1>();
                release(last);
                last = next;
            }
            wgmma_wait<0>();
            pin_all(part);
            release(last);
            each_sum([&](int r, int i) { sums[r][i] += part[r][i]; });
        }
    }
    // Returns the stage, which is in use until its products have ended.
    TILEWISE_DEVICE int issue_stage(Sums& part, int own_rows, Cursor& at, bool keep, bool is_last,
                                    const Place& me) const {
        const int stage = at.stage;
        barrier_wait(full(stage), at.parity);
        wgmma_fence();
        multiply_stage(part, stage, own_rows, keep);
        wgmma_commit();
        if (Shape::kTakesTurns && is_last) next_turn_to_multiply(me);
        at.advance();
        return stage;
    }

    // A stage is released when the products of the next one are under way.
    TILEWISE_DEVICE void multiply_through(Sums& sums, Range range, int own_rows, Cursor& at, const Place& me) const {
        int previous = 0;
        for (int step = range.begin; step < range.end; ++step, at.advance()) {
            barrier_wait(full(at.stage), at.parity);
            pin_all(sums);
            wgmma_fence();
            multiply_stage(sums, at.stage, own_rows, step > range.begin);
            wgmma_commit();
            pin_all(sums);
            if (Shape::kTakesTurns && step + 1 == range.end) next_turn_to_multiply(me);
            if (step > range.begin) {
                wgmma_wait<1>();
                release(previous);
            }
            previous = at.stage;
        }
        wgmma_wait<0>();
        pin_all(sums);
        if (range.end > range.begin) release(previous);
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

    TILEWISE_DEVICE Store store() const { return {args, map_c, shared}; }

    TILEWISE_DEVICE void compute_tiles(const TileOrder<Shape::kClusterM, Shape::kClusterN>& order) const {
        const int thread = static_cast<int>(thread_index()) - 128;
        const Place me{thread / 128, thread % 128};
        const bool boxes =
            Shape::kStoresBoxes && args.split_k == 1 && is_simple<typename Shape::Out, typename Shape::Sum>(args);
        const Store store = this->store();
        Cursor at;
        int turn = 0;
        unsigned buffer = 0;
        for (u32 id = first_id(); id < order.total(); id += block_count(), turn ^= 1) {
            const TilePlace tile = order.locate(id);
            const Range range = range_of(tile);
            if (Shape::kTakesTurns && turn != me.wave) {
                at.skip(range.end - range.begin);
                continue;
            }
            Sums sums;
            const int own_rows = Shape::kTakesTurns ? 0 : me.wave * Shape::kWaveRows;
            if constexpr (Shape::kTakesTurns) my_turn_to_multiply(me);
            multiply(sums, range, own_rows, at, me);
            const int row = Shape::first_row(tile) + own_rows;
            if constexpr (Shape::kSumsInCluster) {
                WgmmaClusterStore<Config>{args, shared}.store(sums, tile, me);
            } else if (boxes) {
                if constexpr (Shape::kStoresBoxes) store.store_boxes(sums, tile, row, me, buffer);
            } else {
                store.store_elements(sums, tile, row, me);
            }
        }
        if (me.thread == 0) store_wait_read<0>();
    }

    // Two warpgroups that take turns: one may issue products only while the other does not, so that each tile's stages are
    // used up in the order they come in; the last products need not have ended. Barriers 4 and 5 say "warpgroup 0 (1) may go".
    static TILEWISE_DEVICE void my_turn_to_multiply(const Place& me) { named_sync(4 + me.wave, 256); }
    static TILEWISE_DEVICE void next_turn_to_multiply(const Place& me) { named_arrive(4 + (me.wave ^ 1), 256); }

    TILEWISE_DEVICE void run() const {
        const TileOrder<Shape::kClusterM, Shape::kClusterN> order(args, Shape::kSwapped ? Shape::kTileN : Shape::kTileM,
                                                                  Shape::kSwapped ? Shape::kTileM : Shape::kTileN);
        const bool copies = thread_index() < 128;
        if (thread_index() == 0) {
            prefetch_map(map_a);
            prefetch_map(map_b);
            if constexpr (Shape::kStoresBoxes) prefetch_map(map_c);
            // Every computing warp of every block of the cluster releases a stage; with turns, those of one warpgroup.
            constexpr unsigned kReleases = 4 * (Shape::kTakesTurns ? 1 : Shape::kWaves) * Shape::kCluster;
            for (int i = 0; i < Shape::kStages; ++i) {
                barrier_init(full(i), 1);
                barrier_init(empty(i), kReleases);
            }
            barrier_init_fence();
        }
        if constexpr (Shape::kCluster > 1) {
            cluster_sync();
        } else {
            sync_block();
        }
        griddep_launch();
        griddep_wait();
        if (copies) {
            if constexpr (Shape::kHandsOver) give_registers<Config::copy_registers>();
            if (warp_index() == 0 && elect_one()) copy_tiles(order);
        } else {
            if constexpr (Shape::kHandsOver) take_registers<Config::compute_registers>();
            // The second warpgroup lets the first go first.
            if constexpr (Shape::kTakesTurns) {
                if (thread_index() >= 256) named_arrive(4, 256);
            }
            compute_tiles(order);
        }
    }
};

}  // namespace tilewise::cuda

#define TILEWISE_CUDA_WGMMA_GEMM(Config)                                                                            \
    extern "C" __global__ void __launch_bounds__(Config::threads, 1) TILEWISE_KERNEL_SYMBOL(                        \
        const __grid_constant__ tilewise::KernelArgs args, const __grid_constant__ tilewise::cuda::TensorMap a,     \
        const __grid_constant__ tilewise::cuda::TensorMap b, const __grid_constant__ tilewise::cuda::TensorMap c) { \
        const tilewise::cuda::WgmmaGemm<Config> gemm{args, a, b, c, tilewise::cuda::shared_start()};                \
        gemm.run();                                                                                                 \
    }                                                                                                               \
    TILEWISE_CUDA_REDUCE(Config)
