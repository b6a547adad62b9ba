// SPDX-License-Identifier: MIT
// Forward and backward data of 3x3 filters on warpgroup products, for groups whose weights fit shared memory: all of them stay
// there, and runs of pixels pass by. A block has the weights of one group and tile_n columns; each of its warpgroups is a worker of
// its own with its own ring of stages, so that one stores results while others multiply. A stage is one line of channels (at most
// 64) of a run of positions and as many more as the taps reach (common/resident_filter_conv_args.hpp): one copy in im2col mode,
// which all taps of the filter read, shifted by whole lines, which is where their descriptors start. With clusters of blocks (1 x
// n) those of one group's tiles of columns work in step: each copies a share of a stage for all of them.
//   forward          columns k, sums over c: a stride has a walk of x, and so a stage, for each remainder
//   backward data    columns c, sums over k: the pixels of each class of a stride are sums of their own
// Merged groups are one with weights of zero where rows and columns are not of the same one of them.
// Groups whose channels end or begin inside 32 bytes: their neighbours' come with them, and their weights here are zeros. As with merged
// groups, an infinity in one can become a NaN in its neighbour.
// Results are finished in registers and leave through shared memory as elements; sums of epilogues that are not known, or whose pairs
// of neighbours are not aligned, leave through it as they are, to be finished in a rolled loop.
// Bytes   a run is read once for each tile of columns, and (rows + reach) / rows times; weights once for each block.
#pragma once
#include "../../common/resident_filter_conv_args.hpp"
#include "../../gpu/divisor.hpp"
#include "../../gpu/epilogue.hpp"
#include "../hopper.hpp"
#include "resident_filter.hpp"

namespace tilewise::cuda::resident_filter_conv {

TILEWISE_DEVICE const ResidentFilterConvArgs& resident_filter_conv_args_of(const KernelArgs& args) {
    return TILEWISE_FAMILY_ARGS(ResidentFilterConvArgs, args);
}

template <class Config>
struct ResidentFilterConv {
    using Element = typename Config::A;
    using Out = typename Config::Out;
    using Chain = ChainOf<Config>;
    static constexpr bool kBackward = Config::direction == Direction::backward_data;
    static constexpr int kColumns = Config::tile_n, kOwnSums = kColumns / 2, kWaves = Config::wave_m;
    static constexpr int kRows = Config::tile_m / kWaves, kRepeats = kRows / 64;
    static constexpr int kStrideH = Config::ct_stride[1], kStrideW = Config::ct_stride[2];
    static constexpr int kRemainders = kStrideH * kStrideW;
    static constexpr int kWalks = kBackward ? 1 : kRemainders, kClasses = kBackward ? kRemainders : 1;
    static constexpr int kSharers = Config::cluster_n;
    static constexpr int kTaps = kResidentFilterTaps * kResidentFilterTaps, kStepBytes = 32;
    static_assert(Config::ndim == 2 && kRows % 64 == 0 && Element::bytes == 2 && Out::bytes == 2);
    static_assert(Config::threads == 128 * (kWaves + 1) && kWaves <= 4 && kColumns >= 16);
    // Shared memory: barriers, where the rows of a worker's results go, results on their way, weights, stages.
    static constexpr int kRowTable = 1024, kStaging = kRowTable + 1024;
    static constexpr int kPitch = (kColumns / 8 | 1) * 16;  // an odd number of chunks: rows begin in different banks
    static constexpr int kStagingBytes = 64 * kPitch,
                         kWeights = (kStaging + kWaves * kStagingBytes + 1023) / 1024 * 1024;
    using Weights = ResidentFilter<Config>;

    const KernelArgs& args;
    const TensorMap &map_lines, &map_last;
    const KernelConv& conv = args.conv;
    const ResidentFilterConvArgs& shape = resident_filter_conv_args_of(args);
    const SharedAddress shared = shared_start();
    int group, column, part;  // of the block's job, the first ones; its first worker

    TILEWISE_DEVICE ResidentFilterConv(const KernelArgs& kernel_args, const TensorMap& lines, const TensorMap& last)
        : args(kernel_args), map_lines(lines), map_last(last) {
        const int block = int(block_index()), job = block % shape.jobs;
        group = job / shape.column_tiles * Config::merge, column = job % shape.column_tiles * kColumns;
        part = block / shape.jobs * kWaves;
    }

    // Of the first channel that is summed, among all groups'.
    TILEWISE_DEVICE int first_channel() const { return group * int(kBackward ? conv.k : conv.c); }
    // Channels of the group before that are copied with this one's.
    TILEWISE_DEVICE int before() const { return first_channel() % kResidentFilterStepChannels; }

    struct Ring {
        SharedAddress barriers, slots;
        int slot_bytes;
        TILEWISE_DEVICE SharedAddress full(int stage) const { return barriers + SharedAddress(stage * 16); }
        TILEWISE_DEVICE SharedAddress empty(int stage) const { return full(stage) + 8; }
        TILEWISE_DEVICE SharedAddress slot(int stage) const { return slots + SharedAddress(stage * slot_bytes); }
    };
    TILEWISE_DEVICE Ring ring(int worker) const {
        const int slots = kWeights + Weights::bytes(shape) + worker * shape.stages * shape.slot_bytes;
        return {shared + SharedAddress(worker * kResidentFilterMostStages * 16), shared + SharedAddress(slots),
                shape.slot_bytes};
    }
    struct Cursor {
        int stage = 0;
        unsigned parity = 0;
        TILEWISE_DEVICE void advance(int stages) {
            if (++stage == stages) stage = 0, parity ^= 1;
        }
    };

    // ---- Copying: a thread for each worker ----

    TILEWISE_DEVICE void copy_all(int worker) const {
        const Ring to = ring(worker);
        const int first = first_channel() - before();
        Cursor at;
        TILEWISE_ROLLED
        for (int tile = part + worker; tile < shape.tiles; tile += shape.parts) {
            const int lines = shape.slot_lines / kSharers, own = kSharers > 1 ? int(cluster_rank()) * lines : 0;
            const int position = tile * kRows + own, width = shape.extent[2], height = shape.extent[1];
            const int up = position / width, image = up / height;
            const int x = (position - up * width) * (kBackward ? 1 : kStrideW) - shape.pad[2];
            const int y = (up - image * height) * (kBackward ? 1 : kStrideH) - shape.pad[1];
            TILEWISE_ROLLED
            for (int line = 0; line < shape.lines; ++line) {
                const bool is_last = line + 1 == shape.lines;
                const int line_bytes = is_last ? resident_filter_line_bytes(shape.last_steps) : 128;
                TILEWISE_ROLLED
                for (int walk = 0; walk < kWalks; ++walk) {
                    barrier_wait(to.empty(at.stage), at.parity ^ 1);
                    barrier_expect(to.full(at.stage), unsigned(shape.slot_lines * line_bytes));
                    copy(to.slot(at.stage) + SharedAddress(own * line_bytes), is_last ? map_last : map_lines,
                         to.full(at.stage), first + line * kResidentFilterLineChannels, x, y, image, walk);
                    at.advance(shape.stages);
                }
            }
        }
    }

    static TILEWISE_DEVICE void copy(SharedAddress to, const TensorMap& map, SharedAddress barrier, int channel, int x,
                                     int y, int image, int walk) {
        const auto along_w = u16(walk % kStrideW), along_h = u16(walk / kStrideW);
        if constexpr (kSharers > 1) {
            constexpr auto kAll = u16((1 << kSharers) - 1);
            copy_im2col_multicast(to, map, barrier, channel, x, y, image, along_w, along_h, kAll, kKeepNormal);
        } else {
            copy_im2col(to, map, barrier, channel, x, y, image, along_w, along_h, kKeepNormal);
        }
    }

    // ---- Computing ----

    // This warp has read the stage: whoever copies there must know.
    static TILEWISE_DEVICE void release(SharedAddress empty) {
        if constexpr (kSharers > 1) {
            if (lane_index() < kSharers) barrier_arrive_remote(empty, unsigned(lane_index()));
        } else {
            if (lane_index() == 0) barrier_arrive(empty);
        }
    }

    using Sums = float[kRepeats][kClasses][kOwnSums];

    static TILEWISE_DEVICE void pin_all(Sums& sums) {
        TILEWISE_UNROLL
        for (int r = 0; r < kRepeats; ++r) {
            TILEWISE_UNROLL
            for (int c = 0; c < kClasses; ++c) {
                TILEWISE_UNROLL
                for (int i = 0; i < kOwnSums; ++i) pin(sums[r][c][i]);
            }
        }
    }

    // The taps of a walk on one stage: `weights` is where the first tap's of this line are.
    template <int kWalk, int kSteps>
    TILEWISE_DEVICE void multiply(Sums& sums, SharedAddress slot, SharedAddress weights) const {
        constexpr int kLineBytes = resident_filter_line_bytes(kSteps);
        const unsigned long long pixels = operand_at<kLineBytes>(slot, 0, 8 * kLineBytes);
        const unsigned long long columns = operand_at<kLineBytes>(weights, 0, 8 * kLineBytes);
        TILEWISE_UNROLL
        for (int tap = 0; tap < kTaps; ++tap) {
            const TapAlong h = tap_along(tap / kResidentFilterTaps, kStrideH, kBackward);
            const TapAlong w = tap_along(tap % kResidentFilterTaps, kStrideW, kBackward);
            const int remainder = h.remainder * kStrideW + w.remainder;
            if (!kBackward && remainder != kWalk) continue;
            const auto shift =
                static_cast<unsigned long long>((h.shift * shape.extent[2] + w.shift) * (kLineBytes / 16));
            TILEWISE_UNROLL
            for (int k = 0; k < kSteps; ++k) {
                TILEWISE_UNROLL
                for (int r = 0; r < kRepeats; ++r) {
                    wgmma<Element, Element, kColumns, 0, 0>(
                        sums[r][kBackward ? remainder : 0],
                        pixels + shift + (r * 64 * kLineBytes + k * kStepBytes) / 16,
                        columns + (tap * kColumns * kLineBytes + k * kStepBytes) / 16, true);
                }
            }
        }
    }

    // One branch for each number of products, from fence to commit: others make the compiler wait for every product.
    template <int kWalk>
    TILEWISE_DEVICE void multiply_stage(Sums& sums, SharedAddress slot, SharedAddress weights, int steps) const {
        pin_all(sums);
        if (steps == kResidentFilterFullSteps) {
            wgmma_fence();
            multiply<kWalk, kResidentFilterFullSteps>(sums, slot, weights);
            wgmma_commit();
        } else if (steps == 3) {
            wgmma_fence();
            multiply<kWalk, 3>(sums, slot, weights);
            wgmma_commit();
        } else if (steps == 2) {
            wgmma_fence();
            multiply<kWalk, 2>(sums, slot, weights);
            wgmma_commit();
        } else {
            wgmma_fence();
            multiply<kWalk, 1>(sums, slot, weights);
            wgmma_commit();
        }
        pin_all(sums);
    }

    template <int kWalk>
    TILEWISE_DEVICE void take_walks(Sums& sums, const Ring& from, Cursor& at, int& previous, SharedAddress weights,
                                    int steps) const {
        if constexpr (kWalk < kWalks) {
            barrier_wait(from.full(at.stage), at.parity);
            multiply_stage<kWalk>(sums, uniform(int(from.slot(at.stage))), weights, steps);
            if (previous >= 0) {  // the products of the stage before have ended
                wgmma_wait<1>();
                release(from.empty(previous));
            }
            previous = at.stage;
            at.advance(shape.stages);
            take_walks<kWalk + 1>(sums, from, at, previous, weights, steps);
        }
    }

    TILEWISE_DEVICE void compute_all(int worker) const {
        const Ring from = ring(worker);
        const Places places(*this);
        Cursor at;
        TILEWISE_ROLLED
        for (int tile = part + worker; tile < shape.tiles; tile += shape.parts) {
            Sums sums = {};
            int previous = -1;
            TILEWISE_ROLLED
            for (int line = 0; line < shape.lines; ++line) {
                const int steps = uniform(line + 1 == shape.lines ? shape.last_steps : kResidentFilterFullSteps);
                take_walks<0>(sums, from, at, previous, shared + SharedAddress(kWeights + line * Weights::kLineBytes),
                              steps);
            }
            wgmma_wait<0>();
            pin_all(sums);
            release(from.empty(previous));
            if (finishes_in_registers<Chain, Out, float, 2>(args)) {
                store(sums, tile, worker, places);
            } else {
                finish_all(sums, tile, worker, places);
            }
        }
    }

    // ---- Results ----

    // Which row of C a position's result is, of a class of pixels.
    struct Places {
        Divisor width, height;
        int stride_h, stride_w, origin_h, origin_w, in_h, in_w, images;

        TILEWISE_DEVICE explicit Places(const ResidentFilterConv& c)
            : width(u32(c.shape.extent[2])), height(u32(c.shape.extent[1])) {
            stride_h = kBackward ? kStrideH : 1, stride_w = kBackward ? kStrideW : 1;
            origin_h = int(c.conv.pad[1]) % stride_h, origin_w = int(c.conv.pad[2]) % stride_w;
            in_h = int(kBackward ? c.conv.in[1] : c.conv.out[1]), in_w = int(kBackward ? c.conv.in[2] : c.conv.out[2]);
            images = int(c.conv.images);
        }
        TILEWISE_DEVICE int row(int position, int of_class) const {
            u32 at = u32(position);
            const u32 up = width.divide(at), image_up = up;
            u32 line = image_up;
            const u32 image = height.divide(line);
            const int y = int(line) * stride_h + of_class / kStrideW - origin_h;
            const int x = int(at) * stride_w + of_class % kStrideW - origin_w;
            const bool is_there = y >= 0 && y < in_h && x >= 0 && x < in_w && int(image) < images;
            return is_there ? (int(image) * in_h + y) * in_w + x : -1;
        }
    };

    // Of a worker: results on their way, and which rows of C they are.
    TILEWISE_DEVICE SharedAddress staging(int worker) const {
        return shared + SharedAddress(kStaging + worker * kStagingBytes);
    }
    TILEWISE_DEVICE SharedAddress row_table(int worker) const {
        return shared + SharedAddress(kRowTable + worker * 256);
    }
    TILEWISE_DEVICE void put_rows(int position, int of_class, int worker, const Places& places) const {
        const int thread = thread_index() % 128;
        if (thread < 64) {
            const int row = places.row(position + thread, of_class);
            store_shared<4>(row_table(worker) + SharedAddress(thread * 4), Packet<4>{{u32(row)}});
        }
    }
    TILEWISE_DEVICE int row_of(int row, int worker) const {
        return int(load_shared<4>(row_table(worker) + SharedAddress(row * 4)).words[0]);
    }
    // From the block's first column on; merged groups' follow each other.
    TILEWISE_DEVICE int columns_left() const { return int(args.n) * Config::merge - column; }
    // `count` elements of a row of C, -1 for none, from one of the block's columns on.
    TILEWISE_DEVICE RunPlace place_of(int row, int own_column, int count) const {
        const Index first = group * args.c.batch_stride + column, bias = group * args.bias_batch_stride + column;
        return {first + row * args.c.row_stride + own_column, bias + own_column, row, column + own_column,
                row >= 0 && own_column < columns_left() ? count : 0};
    }

    TILEWISE_DEVICE void store(const Sums& sums, int tile, int worker, const Places& places) const {
        constexpr int kChunks = kColumns / 8, kChunkElements = 8;
        const int thread = thread_index() % 128;
        const int columns = columns_left();
        auto* const c = static_cast<typename Out::Storage*>(args.c.data) + group * args.c.batch_stride + column;
        TILEWISE_UNROLL
        for (int r = 0; r < kRepeats; ++r) {
            TILEWISE_UNROLL
            for (int q = 0; q < kClasses; ++q) {
                const int position = tile * kRows + r * 64;
                named_sync(1 + worker, 128);  // nobody reads the results before these any more
                put_results(staging(worker), sums[r][q], rows_of(position, q, thread, places), thread);
                put_rows(position, q, worker, places);
                named_sync(1 + worker, 128);
                TILEWISE_UNROLL
                for (int i = 0; i < (64 * kChunks + 127) / 128; ++i) {
                    const int piece = i * 128 + thread, row = piece / kChunks, chunk = piece - row * kChunks;
                    if (row >= 64 || chunk * kChunkElements >= columns) continue;
                    const int to = row_of(row, worker);
                    if (to < 0) continue;
                    store_global<16>(c + to * args.c.row_stride + chunk * kChunkElements,
                                     load_shared<16>(staging(worker) + SharedAddress(row * kPitch + chunk * 16)));
                }
            }
        }
    }

    // A thread has sums of two rows of 64, eight apart, and of each group of 8 columns two neighbours.
    struct ResultRows {
        int upper, lower;  // of C
    };
    static TILEWISE_DEVICE int lane_row(int thread) { return thread / 32 * 16 + thread % 32 / 4; }
    static TILEWISE_DEVICE int lane_column(int thread) { return thread % 4 * 2; }
    TILEWISE_DEVICE ResultRows rows_of(int position, int of_class, int thread, const Places& places) const {
        if constexpr (Chain::kFixed && Chain::kReadsTensors) {
            const int first = position + lane_row(thread);
            return {places.row(first, of_class), places.row(first + 8, of_class)};
        } else {
            return {0, 0};  // nobody asks
        }
    }

    // 64 rows of results in lines of kPitch bytes.
    TILEWISE_DEVICE void put_results(SharedAddress to, const float (&d)[kOwnSums], const ResultRows& rows,
                                     int thread) const {
        const int lane = thread % 32, warp_row = thread / 32 * 16;
        // stmatrix: lanes 0-7 give the lines of the upper left 8 x 8, then lower left, upper right, lower right.
        const SharedAddress lines = to + SharedAddress((warp_row + lane % 16) * kPitch + lane / 16 * 16);
        TILEWISE_UNROLL
        for (int c = 0; c + 16 <= kColumns; c += 16) {
            const int i = c / 2;
            store_matrices(lines + SharedAddress(c * 2),
                           {pack(d, i, rows.upper, thread), pack(d, i + 2, rows.lower, thread),
                            pack(d, i + 4, rows.upper, thread), pack(d, i + 6, rows.lower, thread)});
        }
        if constexpr (kColumns % 16 != 0) {
            constexpr int i = (kColumns - 8) / 2;
            const SharedAddress at = to + SharedAddress((warp_row + lane / 4) * kPitch + i * 4 + lane % 4 * 4);
            store_shared<4>(at, Packet<4>{{pack(d, i, rows.upper, thread)}});
            store_shared<4>(at + SharedAddress(8 * kPitch), Packet<4>{{pack(d, i + 2, rows.lower, thread)}});
        }
    }
    // Sums i and the next, of group i / 4 of 8 columns.
    TILEWISE_DEVICE u32 pack(const float (&d)[kOwnSums], int i, int row, int thread) const {
        const float pair[2] = {d[i], d[i + 1]};
        float values[2];
        finish_in_registers<Chain, Out, Along::columns, true>(
            args, pair, place_of(row, i / 4 * 8 + lane_column(thread), 2), values);
        return pack_pair<Out>(values[0], values[1]);
    }

    // The sums of some groups of 8 columns at a time, as they are, through the staging.
    TILEWISE_DEVICE void finish_all(const Sums& sums, int tile, int worker, const Places& places) const {
        constexpr int kGroups = kColumns / 8, kEach = kPitch / 32, kParts = (kGroups + kEach - 1) / kEach;
        constexpr int kPasses = kRepeats * kClasses * kParts;
        const int thread = thread_index() % 128;
        const SharedAddress lines =
            staging(worker) + SharedAddress(lane_row(thread) * kPitch + lane_column(thread) * 4);
        TILEWISE_ROLLED
        for (int pass = 0; pass < kPasses; ++pass) {
            const int part_of = pass % kParts, of_class = pass / kParts % kClasses, r = pass / kParts / kClasses;
            named_sync(1 + worker, 128);  // nobody reads the sums before these any more
            TILEWISE_UNROLL
            for (int p = 0; p < kPasses; ++p) {  // registers have no addresses: every pass has its own code
                if (p != pass) continue;
                const float(&d)[kOwnSums] = sums[p / kParts / kClasses][p / kParts % kClasses];
                TILEWISE_UNROLL
                for (int g = 0; g < kEach; ++g) {
                    const int i = (p % kParts * kEach + g) * 4;
                    if (i >= kOwnSums) continue;
                    store_shared_float2(lines + SharedAddress(g * 32), d[i], d[i + 1]);
                    store_shared_float2(lines + SharedAddress(8 * kPitch + g * 32), d[i + 2], d[i + 3]);
                }
            }
            put_rows(tile * kRows + r * 64, of_class, worker, places);
            named_sync(1 + worker, 128);
            finish_columns<kEach * 8>(part_of * kEach * 8, worker);
        }
    }
    // 64 rows of some columns from the staging to C.
    template <int count>
    TILEWISE_DEVICE void finish_columns(int first_column, int worker) const {
        constexpr int kRun = 4, kRuns = count / kRun;
        TILEWISE_ROLLED
        for (int i = thread_index() % 128; i < 64 * kRuns; i += 128) {
            const int row = i / kRuns, own = i % kRuns * kRun;
            const RunPlace place = place_of(row_of(row, worker), first_column + own, kRun);
            if (place.count == 0 || first_column + own >= kColumns) continue;
            float sums[kRun], values[kRun];
            load_shared_float4(staging(worker) + SharedAddress(row * kPitch + own * 4), sums);
            finish_run<Chain, Out, Along::columns>(args, sums, place, values);
            write_run<Out>(args, place, values);
        }
    }

    TILEWISE_DEVICE void work() const {
        griddep_launch();
        if (thread_index() == 0) {
            prefetch_map(map_lines);
            prefetch_map(map_last);
            TILEWISE_ROLLED
            for (int worker = 0; worker < kWaves; ++worker) {
                const Ring own = ring(worker);
                TILEWISE_ROLLED
                for (int i = 0; i < shape.stages; ++i) {
                    barrier_init(own.full(i), 1);
                    barrier_init(own.empty(i), 4 * kSharers);  // warps
                }
            }
            barrier_init_fence();
        }
        if constexpr (kSharers > 1) {
            cluster_sync();
        } else {
            sync_block();
        }
        griddep_wait();
        const int warp = warp_index();
        if (warp < 4 * kWaves) {
            Weights{args, shape, shared + kWeights, group, column, before()}.fetch();
            async_proxy_fence();
            named_sync(1 + kWaves, 128 * kWaves);
            compute_all(warp / 4);
        } else if (warp < 5 * kWaves) {
            if (lane_index() == 0) copy_all(warp - 4 * kWaves);
        }
        if constexpr (kSharers > 1) cluster_sync_apart();  // others may still copy here, or say what they have read
    }
};

}  // namespace tilewise::cuda::resident_filter_conv

#define TILEWISE_CUDA_RESIDENT_FILTER_CONV(Config)                                                                  \
    extern "C" __global__ void __launch_bounds__(Config::threads, 1) TILEWISE_KERNEL_SYMBOL(                        \
        const __grid_constant__ tilewise::KernelArgs args, const __grid_constant__ tilewise::cuda::TensorMap a,     \
        const __grid_constant__ tilewise::cuda::TensorMap b, const __grid_constant__ tilewise::cuda::TensorMap c) { \
        (void)c;                                                                                                    \
        tilewise::cuda::resident_filter_conv::ResidentFilterConv<Config>(args, a, b).work();                        \
    }
