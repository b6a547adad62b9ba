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
// Results leave as resident_filter_store.hpp says.
// Bytes   a run is read once for each tile of columns, and (rows + reach) / rows times; weights once for each block.
#pragma once
#include "../../common/resident_filter_conv_args.hpp"
#include "../hopper.hpp"
#include "resident_filter.hpp"
#include "resident_filter_store.hpp"

namespace tilewise::cuda::resident_filter_conv {

TILEWISE_DEVICE const ResidentFilterConvArgs& resident_filter_conv_args_of(const KernelArgs& args) {
    return TILEWISE_FAMILY_ARGS(ResidentFilterConvArgs, args);
}

template <class Config>
struct ResidentFilterConv {
    using Element = typename Config::A;
    using Store = ResidentFilterStore<Config>;
    static constexpr bool kBackward = Config::direction == Direction::backward_data;
    static constexpr int kColumns = Store::kColumns, kOwnSums = Store::kOwnSums, kWaves = Config::wave_m;
    static constexpr int kRows = Store::kRows, kRepeats = Store::kRepeats, kClasses = Store::kClasses;
    static constexpr int kStrideH = Config::ct_stride[1], kStrideW = Config::ct_stride[2];
    static constexpr int kWalks = kBackward ? 1 : kStrideH * kStrideW;
    static constexpr int kSharers = Config::cluster_n;
    static constexpr int kTaps = kResidentFilterTaps * kResidentFilterTaps, kStepBytes = 32;
    static_assert(Config::ndim == 2 && kRows % 64 == 0 && Element::bytes == 2);
    static_assert(Config::threads == 128 * (kWaves + 1) && kWaves <= 4);
    // Shared memory: barriers, where the rows of a worker's results go, results on their way, weights, stages.
    static constexpr int kRowTable = 1024, kStaging = kRowTable + 1024;
    static constexpr int kWeights = (kStaging + kWaves * Store::kStagingBytes + 1023) / 1024 * 1024;
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

    // The first channel that is summed has this number among all groups'.
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

    using Sums = typename Store::Sums;

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
        const Store store(args, shape, shared + SharedAddress(kStaging + worker * Store::kStagingBytes),
                          shared + SharedAddress(kRowTable + worker * Store::kTableBytes), 1 + worker, group, column);
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
            store.run(sums, tile);
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
