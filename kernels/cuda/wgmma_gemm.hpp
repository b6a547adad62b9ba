// SPDX-License-Identifier: MIT
// GEMM on Hopper's warpgroup instructions: TMA fills a ring of shared-memory stages, one warp issues the copies, one or two
// warpgroups multiply, and finished tiles leave through TMA while the next ones are being computed.
//
// Tile walk   Blocks (clusters of blocks) walk over the tiles of C in the order of tile_order.hpp until none are left; with
//             split_k every part of k is a tile of its own whose sums go to the workspace.
// Shared      `stages` x { A tile, B tile } of 128-byte lines in the 128-byte swizzle: an operand that is contiguous along k
//             has a line for each row (or column), 64 deep; one that is contiguous along m (or n) has, for each 64 rows, a
//             line for each k. Then for each computing warpgroup two buffers of 64 lines for its results, then the barriers.
// Registers   Each computing warpgroup holds its rows of the tile in fp32: tile_m / wave_m x tile_n / 128 a thread.
// Pipelines   compv6: the warpgroups share each tile, by rows. compv5: each takes whole tiles, in turns, so that the results
//             of one leave while the other multiplies.
// Bytes       A tile reads (tile_m + tile_n) x k elements through the L2 cache, of which blocks of a cluster share
//             one operand: cluster_m blocks read the same B once, cluster_n blocks the same A.
// All threads wait for the kernels before them (griddep_wait) before anything in global memory is touched.
#pragma once
#include "epilogue.hpp"
#include "hopper.hpp"
#include "reduce.hpp"
#include "tile_order.hpp"
#include "types.hpp"

namespace tilewise::cuda {

template <class Config>
struct WgmmaGemm {
    using A = typename Config::A;
    using Out = typename Config::Out;

    static constexpr int kTileM = Config::tile_m, kTileN = Config::tile_n, kTileK = Config::tile_k;
    static constexpr bool kTakesTurns = Config::pipeline == Pipeline::compv5;
    static constexpr int kWaves = Config::wave_m;
    static constexpr int kWaveRows = kTakesTurns ? kTileM : kTileM / kWaves;
    static constexpr int kRepeats = kWaveRows / 64;  // products of 64 rows that a warpgroup issues for each 16 of k
    static constexpr int kStages = Config::stages;
    static constexpr int kClusterM = Config::cluster_m, kClusterN = Config::cluster_n;
    static constexpr int kCluster = kClusterM * kClusterN;

    // Swapped, the rows of a tile are columns of C and the other way round: C' = B' A', so that few rows of C fill the narrow
    // side of the products. Then the operand of the rows is B.
    static constexpr bool kSwapped = Config::swap_ab;
    static constexpr bool kRowsAlongK = kSwapped ? !Config::b_row : Config::a_row;
    static constexpr bool kColumnsAlongK = kSwapped ? Config::a_row : !Config::b_row;

    static constexpr int kLineBytes = 128, kLine = kLineBytes / 2;  // elements of 16 bits
    static constexpr int kBytesA = kTileM * kTileK * 2, kBytesB = kTileN * kTileK * 2;
    static constexpr int kStageBytes = kBytesA + kBytesB;
    static constexpr int kStagingBytes = 64 * kLineBytes;  // one buffer; each warpgroup has two
    static constexpr int kStaging = kStages * kStageBytes;
    static constexpr int kBarriers = kStaging + kWaves * 2 * kStagingBytes;
    static constexpr int kBarrierBytes = 1024;

    // Columns of C that leave by one copy, and the XOR that the copy expects in their lines.
    static constexpr int kStoreColumns = kTileN % 64 == 0 ? 64 : kTileN % 32 == 0 ? 32 : 16;
    static constexpr int kStoreBytes = kStoreColumns * 2;
    static constexpr int kStoreChunks = kTileN / kStoreColumns;
    // Lines of C that begin anywhere cannot leave by tensor copies.
    static constexpr bool kStoresBoxes =
        Out::bytes == 2 && Config::c_row && !kSwapped && Config::vector_c * Out::bytes == 16;

    static constexpr bool kStoresPairs = Out::bytes == 2 && Config::c_row && !kSwapped && !kStoresBoxes;

    static_assert(Config::wave_n == 1 && Config::wave_k == 1 && Config::warp_m == 64 && Config::warp_n == kTileN);
    static_assert(kTileK == kLine, "a stage is one line deep");
    static_assert(kWaveRows % 64 == 0 && (kWaves == 1 || kWaves == 2));
    static_assert(kColumnsAlongK || kTileN % kLine == 0, "lines along the columns are whole");
    static_assert(!kSwapped || kCluster == 1);
    static_assert(kBarriers + kBarrierBytes == Config::shared_bytes && Config::threads == 128 * (kWaves + 1));
    static_assert(2 * kStages * 8 <= kBarrierBytes);

    const KernelArgs& args;
    const TensorMap &map_a, &map_b, &map_c;
    unsigned shared;  // its address

    TILEWISE_DEVICE unsigned full(int stage) const { return shared + kBarriers + stage * 16; }
    TILEWISE_DEVICE unsigned empty(int stage) const { return shared + kBarriers + stage * 16 + 8; }

    // Where a role is in the ring: each turn around flips the parity that its waits look for.
    struct Cursor {
        int stage = 0;
        unsigned parity = 0;
        TILEWISE_DEVICE void advance() {
            if (++stage == kStages) {
                stage = 0;
                parity ^= 1;
            }
        }
        TILEWISE_DEVICE void skip(int steps) {
            stage += steps;
            parity ^= static_cast<unsigned>(stage / kStages) & 1;
            stage %= kStages;
        }
    };

    TILEWISE_DEVICE int first_row(const TilePlace& tile) const {
        return static_cast<int>(kSwapped ? tile.tile_n : tile.tile_m) * kTileM;
    }
    TILEWISE_DEVICE int first_column(const TilePlace& tile) const {
        return static_cast<int>(kSwapped ? tile.tile_m : tile.tile_n) * kTileN;
    }

    struct Range {
        int begin, end;  // in tiles of k
    };
    TILEWISE_DEVICE Range k_range(int part) const {
        const int steps = static_cast<int>((args.k + kTileK - 1) / kTileK);
        return {static_cast<int>(static_cast<Index>(steps) * part / args.split_k),
                static_cast<int>(static_cast<Index>(steps) * (part + 1) / args.split_k)};
    }

    // --- copying ----------------------------------------------------------------------------------------------------

    // One operand of a stage: `kExtent` rows (or columns) from `first`. Blocks of the cluster that use the same tile each
    // copy a share of its lines to all of them.
    template <int kExtent, bool kAlongK, int kSharers>
    TILEWISE_DEVICE void copy_operand(const TensorMap& map, unsigned to, unsigned barrier, int first, int k, int batch,
                                      int share, unsigned short blocks) const {
        constexpr int kBoxes = kAlongK ? 1 : kExtent / kLine;
        constexpr int kLines = (kAlongK ? kExtent : kTileK) / kSharers;
        const int line = share * kLines;
        TILEWISE_UNROLL
        for (int box = 0; box < kBoxes; ++box) {
            const unsigned at = to + static_cast<unsigned>((box * kTileK + line) * kLineBytes);
            const int x = kAlongK ? k : first + box * kLine;
            const int y = kAlongK ? first + line : k + line;
            if constexpr (kSharers == 1) {
                copy_box(at, map, barrier, x, y, batch, kKeepNormal);
            } else {
                copy_box_multicast(at, map, barrier, x, y, batch, blocks, kKeepNormal);
            }
        }
    }

    TILEWISE_DEVICE void copy_tiles(const TileOrder<kClusterM, kClusterN>& order) const {
        const unsigned rank = kCluster > 1 ? cluster_rank() : 0;
        const int in_m = static_cast<int>(rank) % kClusterM, in_n = static_cast<int>(rank) / kClusterM;
        // The blocks in my column of the cluster share B with me, those in my row share A.
        const auto sharing_b = static_cast<unsigned short>(((1u << kClusterM) - 1) << (in_n * kClusterM));
        unsigned short sharing_a = 0;
        TILEWISE_UNROLL
        for (int i = 0; i < kClusterN; ++i) sharing_a |= static_cast<unsigned short>(1u << (i * kClusterM + in_m));
        Cursor at;
        for (u32 id = block_index(); id < order.total(); id += block_count()) {
            const TilePlace tile = order.locate(id);
            const int row = first_row(tile), column = first_column(tile);
            // One matrix may serve the whole batch.
            const int batch_a = args.a.batch_stride ? static_cast<int>(tile.batch) : 0;
            const int batch_b = args.b.batch_stride ? static_cast<int>(tile.batch) : 0;
            const int batch_rows = kSwapped ? batch_b : batch_a, batch_columns = kSwapped ? batch_a : batch_b;
            const Range range = k_range(static_cast<int>(tile.k_part));
            for (int step = range.begin; step < range.end; ++step, at.advance()) {
                barrier_wait(empty(at.stage), at.parity ^ 1);
                barrier_expect(full(at.stage), kStageBytes);
                const unsigned to = shared + static_cast<unsigned>(at.stage * kStageBytes);
                copy_operand<kTileM, kRowsAlongK, kClusterN>(kSwapped ? map_b : map_a, to, full(at.stage), row,
                                                             step * kTileK, batch_rows, in_n, sharing_a);
                copy_operand<kTileN, kColumnsAlongK, kClusterM>(kSwapped ? map_a : map_b, to + kBytesA, full(at.stage),
                                                                column, step * kTileK, batch_columns, in_m, sharing_b);
            }
        }
        // The last stages must not be released to a block that has gone: wait until all of them have been.
        if constexpr (kCluster > 1) {
            for (int i = 0; i < kStages; ++i, at.advance()) barrier_wait(empty(at.stage), at.parity ^ 1);
        }
    }

    struct Place {
        int wave;    // which computing warpgroup this is
        int thread;  // of the warpgroup
        TILEWISE_DEVICE int barrier() const { return 1 + wave; }
        TILEWISE_DEVICE void sync() const { named_sync(barrier(), 128); }
    };

    // --- computing --------------------------------------------------------------------------------------------------

    // Rows r of 64 are a block of 8 KB in either orientation, and so are 64 columns along n.
    static constexpr unsigned kBlockBytes = 64 * kLineBytes;
    // For k one instruction further: 32 bytes along a line, or 16 lines.
    static constexpr unsigned kStepA = kRowsAlongK ? 32 : 16 * kLineBytes;
    static constexpr unsigned kStepB = kColumnsAlongK ? 32 : 16 * kLineBytes;

    TILEWISE_DEVICE void multiply_stage(float (&sums)[kRepeats][kTileN / 2], int stage, int own_rows, bool keep) const {
        const unsigned a = shared + static_cast<unsigned>(stage * kStageBytes + own_rows * kLineBytes);
        const unsigned b = shared + static_cast<unsigned>(stage * kStageBytes + kBytesA);
        const unsigned long long at_a = operand_at(a, kBlockBytes, 1024), at_b = operand_at(b, kBlockBytes, 1024);
        TILEWISE_UNROLL
        for (int k = 0; k < kTileK / 16; ++k) {
            TILEWISE_UNROLL
            for (int r = 0; r < kRepeats; ++r) {
                // Descriptors count in 16 bytes.
                const unsigned long long from_a = at_a + (k * kStepA + r * kBlockBytes) / 16;
                const unsigned long long from_b = at_b + k * kStepB / 16;
                constexpr int kTransA = kRowsAlongK ? 0 : 1, kTransB = kColumnsAlongK ? 0 : 1;
                if constexpr (kSame<A, Bf16>) {
                    wgmma_bf16<kTileN, kTransA, kTransB>(sums[r], from_a, from_b, keep || k > 0);
                } else {
                    wgmma_fp16<kTileN, kTransA, kTransB>(sums[r], from_a, from_b, keep || k > 0);
                }
            }
        }
    }

    TILEWISE_DEVICE void release(int stage) const {
        const int lane = lane_index();
        if constexpr (kCluster == 1) {
            if (lane == 0) barrier_arrive(empty(stage));
        } else {
            if (lane < kCluster) barrier_arrive_remote(empty(stage), lane);
        }
    }

    // The sums of one tile. A stage is released when the products of the next one are under way.
    TILEWISE_DEVICE void multiply(float (&sums)[kRepeats][kTileN / 2], Range range, int own_rows, Cursor& at,
                                  const Place& me) const {
        int previous = 0;
        for (int step = range.begin; step < range.end; ++step, at.advance()) {
            barrier_wait(full(at.stage), at.parity);
            pin_all(sums);
            wgmma_fence();
            multiply_stage(sums, at.stage, own_rows, step > range.begin);
            wgmma_commit();
            pin_all(sums);
            if (kTakesTurns && step + 1 == range.end) next_turn_to_multiply(me);
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

    static TILEWISE_DEVICE void pin_all(float (&sums)[kRepeats][kTileN / 2]) {
        TILEWISE_UNROLL
        for (int r = 0; r < kRepeats; ++r) {
            TILEWISE_UNROLL
            for (int i = 0; i < kTileN / 2; ++i) pin(sums[r][i]);
        }
    }

    // --- results ----------------------------------------------------------------------------------------------------

    // 16-bit results that are nothing but alpha times the sums: through shared memory, by tensor copies.
    TILEWISE_DEVICE void store_boxes(const float (&sums)[kRepeats][kTileN / 2], const TilePlace& tile, int row_begin,
                                     const Place& me, unsigned& turn) const {
        const unsigned staging = shared + kStaging + static_cast<unsigned>(me.wave * 2 * kStagingBytes);
        const int lane = me.thread % 32;
        // stmatrix: lanes 0-7 give the lines of the upper left 8 x 8, then lower left, upper right, lower right.
        const int row = me.thread / 32 * 16 + lane % 16, column_bytes = lane / 16 * 16;
        constexpr unsigned kXorMask = kStoreBytes / 16 - 1;
        TILEWISE_UNROLL
        for (int r = 0; r < kRepeats; ++r) {
            TILEWISE_UNROLL
            for (int chunk = 0; chunk < kStoreChunks; ++chunk) {
                // The buffers take turns across tiles too: the copy before the last may still be reading its own.
                const unsigned buffer = staging + turn * kStagingBytes;
                turn ^= 1;
                if (me.thread == 0) store_wait_read<1>();
                me.sync();
                TILEWISE_UNROLL
                for (int c = 0; c < kStoreColumns / 16; ++c) {
                    const int i = (chunk * kStoreColumns + c * 16) / 2;
                    const auto& d = sums[r];
                    const unsigned offset = static_cast<unsigned>(row * kStoreBytes + c * 32 + column_bytes);
                    const unsigned at = buffer + (offset ^ ((offset >> 7 & kXorMask) << 4));
                    store_matrices(at, {pack(d[i], d[i + 1]), pack(d[i + 2], d[i + 3]), pack(d[i + 4], d[i + 5]),
                                        pack(d[i + 6], d[i + 7])});
                }
                async_proxy_fence();
                me.sync();
                if (me.thread == 0) {
                    store_box(map_c, buffer, first_column(tile) + chunk * kStoreColumns, row_begin + r * 64,
                              static_cast<int>(tile.batch));
                    store_commit();
                }
            }
        }
    }

    TILEWISE_DEVICE unsigned pack(float low, float high) const {
        return pack_pair<Out>(low * args.alpha, high * args.alpha);
    }

    // Everything else: 64 rows of some columns at a time as fp32 through shared memory, then element by element. The loop
    // over them is not unrolled, and exists once, so that the code stays small; only the registers are picked by hand.
    TILEWISE_DEVICE void store_elements(const float (&sums)[kRepeats][kTileN / 2], const TilePlace& tile, int row_begin,
                                        const Place& me) const {
        const unsigned staging = shared + kStaging + static_cast<unsigned>(me.wave * 2 * kStagingBytes);
        const bool pairs = kStoresPairs && args.split_k == 1 && is_plain(args);
        // A copy of the last tile may still be reading.
        if (me.thread == 0) store_wait_read<0>();
        me.sync();
        TILEWISE_ROLLED
        for (int part = 0; part < kRepeats * kStoreChunks; ++part) {
            TILEWISE_UNROLL
            for (int r = 0; r < kRepeats; ++r) {
                TILEWISE_UNROLL
                for (int chunk = 0; chunk < kStoreChunks; ++chunk) {
                    if (part == r * kStoreChunks + chunk) stage_sums(staging, sums[r], chunk, me.thread);
                }
            }
            me.sync();
            const int row = row_begin + part / kStoreChunks * 64;
            const int column = first_column(tile) + part % kStoreChunks * kStoreColumns;
            if (pairs) {
                if constexpr (kStoresPairs) store_pairs(staging, tile, row, column, me.thread);
            } else {
                finish_part(staging, tile, row, column, me.thread);
            }
            me.sync();
        }
    }

    // Neighbouring rows begin in other banks: groups of 8 columns change places.
    static constexpr int kGroups = kStoreColumns / 8;
    static TILEWISE_DEVICE unsigned staged_at(int row, int column) {
        return static_cast<unsigned>(row * kStoreColumns + ((column / 8) ^ (row % kGroups)) * 8 + column % 8) * 4;
    }

    TILEWISE_DEVICE void stage_sums(unsigned staging, const float (&d)[kTileN / 2], int chunk, int thread) const {
        const int row = thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2;
        TILEWISE_UNROLL
        for (int c = 0; c < kGroups; ++c) {
            const int i = (chunk * kStoreColumns + c * 8) / 2;
            store_shared_float2(staging + staged_at(row, c * 8 + column), d[i], d[i + 1]);
            store_shared_float2(staging + staged_at(row + 8, c * 8 + column), d[i + 2], d[i + 3]);
        }
    }

    // Pairs of 16-bit results that are alpha times the sums, in one access where they lie on its boundary.
    TILEWISE_DEVICE void store_pairs(unsigned staging, const TilePlace& tile, int row_begin, int column_begin,
                                     int thread) const {
        constexpr int kPairs = kStoreColumns / 2;
        auto* c = static_cast<typename Out::Storage*>(args.c.data) + tile.batch * args.c.batch_stride;
        TILEWISE_ROLLED
        for (int i = thread; i < 64 * kPairs; i += 128) {
            const int row = i / kPairs, column = i % kPairs * 2;
            const Index at_row = row_begin + row, at_column = column_begin + column;
            if (at_row >= args.m || at_column >= args.n) continue;
            const unsigned at = staging + staged_at(row, column);
            const u32 pair = pack(load_shared_float(at), load_shared_float(at + 4));
            auto* to = c + at_row * args.c.row_stride + at_column;
            const bool whole = at_column + 1 < args.n;
            if (whole && reinterpret_cast<u64>(to) % 4 == 0) {
                *reinterpret_cast<u32*>(to) = pair;
            } else {
                to[0] = static_cast<u16>(pair);
                if (whole) to[1] = static_cast<u16>(pair >> 16);
            }
        }
    }

    TILEWISE_DEVICE void finish_part(unsigned staging, const TilePlace& tile, int row_begin, int column_begin,
                                     int thread) const {
        constexpr int kElements = 64 * kStoreColumns;
        // Threads that are neighbours write elements that are: along the tile's columns, or its rows.
        constexpr bool kAlongColumns = Config::c_row != kSwapped;
        TILEWISE_ROLLED
        for (int i = thread; i < kElements; i += 128) {
            const int row = kAlongColumns ? i / kStoreColumns : i % 64;
            const int column = kAlongColumns ? i % kStoreColumns : i / 64;
            const Index at_row = kSwapped ? column_begin + column : row_begin + row;  // of C
            const Index at_column = kSwapped ? row_begin + row : column_begin + column;
            if (at_row >= args.m || at_column >= args.n) continue;
            const float sum = load_shared_float(staging + staged_at(row, column));
            if (args.split_k > 1) {
                const Index matrix = static_cast<Index>(tile.k_part) * args.batch + tile.batch;
                static_cast<float*>(args.workspace)[(matrix * args.m + at_row) * args.n + at_column] = sum;
            } else {
                store<Out>(args, finish<Out>(args, sum, tile.batch, at_row, at_column), tile.batch, at_row, at_column);
            }
        }
    }

    TILEWISE_DEVICE void compute_tiles(const TileOrder<kClusterM, kClusterN>& order) const {
        const int thread = static_cast<int>(thread_index()) - 128;
        const Place me{thread / 128, thread % 128};
        const bool boxes = kStoresBoxes && args.split_k == 1 && is_plain(args);
        Cursor at;
        int turn = 0;
        unsigned buffer = 0;
        for (u32 id = block_index(); id < order.total(); id += block_count(), turn ^= 1) {
            const TilePlace tile = order.locate(id);
            const Range range = k_range(static_cast<int>(tile.k_part));
            if (kTakesTurns && turn != me.wave) {
                at.skip(range.end - range.begin);
                continue;
            }
            float sums[kRepeats][kTileN / 2];
            const int own_rows = kTakesTurns ? 0 : me.wave * kWaveRows;
            if constexpr (kTakesTurns) my_turn_to_multiply(me);
            multiply(sums, range, own_rows, at, me);
            const int row = first_row(tile) + own_rows;
            if (boxes) {
                if constexpr (kStoresBoxes) store_boxes(sums, tile, row, me, buffer);
            } else {
                store_elements(sums, tile, row, me);
            }
        }
        if (me.thread == 0) store_wait_read<0>();
    }

    // Two warpgroups that take turns: one may issue products only while the other does not, so that each tile's stages are
    // used up in the order they come in; the last products need not have ended. Barriers 4 and 5 say "warpgroup 0 (1) may go".
    static TILEWISE_DEVICE void my_turn_to_multiply(const Place& me) { named_sync(4 + me.wave, 256); }
    static TILEWISE_DEVICE void next_turn_to_multiply(const Place& me) { named_arrive(4 + (me.wave ^ 1), 256); }

    TILEWISE_DEVICE void run() const {
        const TileOrder<kClusterM, kClusterN> order(args, kSwapped ? kTileN : kTileM, kSwapped ? kTileM : kTileN);
        const bool copies = thread_index() < 128;
        if (thread_index() == 0) {
            prefetch_map(map_a);
            prefetch_map(map_b);
            if constexpr (kStoresBoxes) prefetch_map(map_c);
            // Every computing warp of every block of the cluster releases a stage; with turns, those of one warpgroup.
            constexpr unsigned kReleases = 4 * (kTakesTurns ? 1 : kWaves) * kCluster;
            for (int i = 0; i < kStages; ++i) {
                barrier_init(full(i), 1);
                barrier_init(empty(i), kReleases);
            }
            barrier_init_fence();
        }
        if constexpr (kCluster > 1) {
            cluster_sync();
        } else {
            sync_block();
        }
        griddep_launch();
        griddep_wait();
        if (copies) {
            if constexpr (kWaves == 2) give_registers<Config::copy_registers>();
            if (warp_index() == 0 && elect_one()) copy_tiles(order);
        } else {
            if constexpr (kWaves == 2) take_registers<Config::compute_registers>();
            // The second warpgroup lets the first go first.
            if constexpr (kTakesTurns) {
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
