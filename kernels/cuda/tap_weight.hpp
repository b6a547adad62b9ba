// SPDX-License-Identifier: MIT
// Backward weight on warpgroup products: dw[k][tap][c] = sum over pixels p of dy[p][k] * x[p * stride + tap][c], with
// the pixels as the reduction. A block has rows (tap, a line of channels c) and tile_n columns k of one group,
// over the runs of tile_k positions of its part (common/tap_weight_shape.hpp). The copy engine fetches of every run dy and as much
// of x as its taps reach, zeros where there is no pixel (im2col mode, whose bounding box is the image and what the filter reaches
// beyond it), into a ring of stages; every tap reads the same lines in shared memory, shifted by whole lines, which is where
// its descriptor starts. Rows of 32 channels are two taps to a product, at any distance (the descriptor's leading bytes). Groups of few
// channels are merged: a line holds those of `merge` groups, and of the product of all of them the diagonal is written.
// Floors: positions x rows x columns x 2 at wgmma's rate; shared memory reads 64 rows and tile_n columns for each product.
// A thread of the first warpgroup issues the copies. What parts of the reduction have meets as in halo_weight_drain.hpp.
#pragma once
#include "../common/tap_weight_shape.hpp"
#include "halo_weight_drain.hpp"
#include "reduce_many.hpp"

namespace tilewise::cuda {

TILEWISE_DEVICE const TapWeightShape& tap_weight_shape_of(const KernelArgs& args) {
    return reinterpret_cast<const TapWeightShape&>(args.geometry);
}

// A position among those of all images, and a distance between two: image, then the axes.
template <int kDims>
struct TapPosition {
    int image, at[kDims];  // outermost first

    TILEWISE_DEVICE TapPosition(const TapWeightShape& shape, int index) {
        TILEWISE_UNROLL
        for (int i = kDims - 1; i >= 0; --i) {
            const int extent = shape.extent[kMaxKernelDims - kDims + i], next = index / extent;
            at[i] = index - next * extent;
            index = next;
        }
        image = index;
    }
    TILEWISE_DEVICE void add(const TapWeightShape& shape, const TapPosition& distance) {
        int carry = 0;
        TILEWISE_UNROLL
        for (int i = kDims - 1; i >= 0; --i) {
            const int extent = shape.extent[kMaxKernelDims - kDims + i], sum = at[i] + distance.at[i] + carry;
            carry = sum >= extent ? 1 : 0;
            at[i] = sum - carry * extent;
        }
        image += distance.image + carry;
    }
};

// The sums of a warpgroup, as the drain takes them: a line for every column.
template <class Config>
struct TapWeightCore {
    using Element = typename Config::A;
    static constexpr int kRows = 64, kWaveM = Config::tile_m / Config::wave_m, kWaveN = Config::tile_n;
    static constexpr int kRepeats = kWaveM / kRows, kOwnSums = kWaveN / 2, kGroups = Config::merge;
    static constexpr bool kFew = false;
    static constexpr int kPitch = halo_weight_sum_pitch(kWaveM), kSumBytes = kWaveN * kPitch;
    static_assert(kWaveM % kRows == 0 && Config::warp_m == kRows && Config::warp_n == kWaveN && Element::bytes == 2);

    float sums[kRepeats][kOwnSums] = {};

    TILEWISE_DEVICE void pin_all() {
        TILEWISE_UNROLL
        for (int r = 0; r < kRepeats; ++r) {
            TILEWISE_UNROLL
            for (int i = 0; i < kOwnSums; ++i) pin(sums[r][i]);
        }
    }
    // Where products leave their results is said at wgmma (hopper.hpp).
    TILEWISE_DEVICE void put(SharedAddress shared, int wave, int thread) const {
        const SharedAddress own = shared + SharedAddress(wave * kSumBytes + thread % 4 * 2 * kPitch +
                                                         (thread / 32 * 16 + thread % 32 / 4) * 4);
        TILEWISE_UNROLL
        for (int r = 0; r < kRepeats; ++r) {
            TILEWISE_UNROLL
            for (int i = 0; i < kOwnSums; ++i) {
                const int column = i / 4 * 8 + i % 2, row = r * kRows + i / 2 % 2 * 8;
                store_shared_float(own + SharedAddress(column * kPitch + row * 4), sums[r][i]);
            }
        }
    }
};

template <class Config>
struct TapWeight {
    using Core = TapWeightCore<Config>;
    using Element = typename Config::A;
    using Drain = HaloWeightDrain<Config, Core>;
    using Position = TapPosition<Config::ndim>;
    static constexpr bool kMerges = Config::merge > 1;
    static constexpr int kDims = Config::ndim, kPositions = Config::tile_k, kDepth = 16, kWaves = Config::wave_m;
    static constexpr int kYLineBytes = Config::tile_n * Element::bytes, kYBytes = kPositions * kYLineBytes;
    static_assert(kYLineBytes == 128 || kYLineBytes == 64, "a line of columns for each position");
    static_assert(kPositions % kDepth == 0 && kPositions <= 256 && kYBytes % 1024 == 0);
    static constexpr int kTables = Config::tile_m * 4, kBarrierBytes = kTapMostStages * 16;
    static constexpr int kRing = (kTables + kBarrierBytes + 1023) / 1024 * 1024;  // where the stages begin
    static_assert(kRing + kWaves * Core::kSumBytes <= Config::shared_bytes, "sums take the place of the stages");

    const KernelArgs& args;
    const TensorMap &map_y, &map_x;
    const KernelConv& conv = args.conv;
    const TapWeightShape& shape = tap_weight_shape_of(args);
    const SharedAddress shared = shared_start(), ring = shared + kRing;
    HaloWeightPlace place;
    int first_tap, channel;  // of the block's rows; channels of x in the group
    int begin, count;        // runs of positions

    TILEWISE_DEVICE TapWeight(const KernelArgs& kernel_args, const TensorMap& y, const TensorMap& x)
        : args(kernel_args), map_y(y), map_x(x) {
        const int block_taps = shape.block_taps;
        const int lines = kMerges ? 1 : (int(conv.c) + shape.line - 1) / shape.line;
        const int tap_tiles = (tap_count(conv) + block_taps - 1) / block_taps;
        const int tiles_n = kMerges ? 1 : (int(conv.k) + Config::tile_n - 1) / Config::tile_n;
        place = HaloWeightPlace::of_block<Config>(args, shape.together, tap_tiles * lines, tiles_n);
        const int tile = place.row / Config::tile_m, of_taps = tile / lines;
        first_tap = of_taps * block_taps, channel = (tile - of_taps * lines) * shape.line;
        const int each = shape.steps / args.split_k, longer = shape.steps - each * args.split_k;
        begin = place.part * each + (place.part < longer ? place.part : longer);
        count = each + (place.part < longer ? 1 : 0);
    }

    TILEWISE_DEVICE SharedAddress full(int stage) const { return shared + SharedAddress(kTables + stage * 16); }
    TILEWISE_DEVICE SharedAddress empty(int stage) const { return full(stage) + 8; }
    TILEWISE_DEVICE unsigned stage_bytes() const { return unsigned(kYBytes + shape.x_bytes()); }
    TILEWISE_DEVICE SharedAddress stage_at(int stage) const { return ring + SharedAddress(stage) * stage_bytes(); }
    TILEWISE_DEVICE int base_shift() const { return tap_place(conv, shape, first_tap).shift; }
    TILEWISE_DEVICE int walk_lines() const { return shape.x_boxes * shape.box_lines; }

    // ---- Copying: one thread ----

    struct Copies {
        Position y, x, run,
            box;  // where the next run begins, and how far it is to the one after, and between copies of x
        int left, stage = 0;
    };
    TILEWISE_DEVICE Copies copies() const {
        const int first = begin * kPositions;
        return {Position(shape, first), Position(shape, first + base_shift()), Position(shape, kPositions),
                Position(shape, shape.box_lines), count};
    }
    TILEWISE_DEVICE void issue(Copies& c) const {
        const SharedAddress barrier = full(c.stage), to = stage_at(c.stage);
        barrier_expect(barrier, stage_bytes());
        const u16 none[kMaxKernelDims] = {};
        copy<false>(to, map_y, barrier, place.group * int(conv.k) + place.col, c.y, none);
        SharedAddress x = to + kYBytes;
        TILEWISE_ROLLED
        for (int walk = 0; walk < shape.x_walks(); ++walk) {
            const int up = walk / shape.walks[2], d = up / shape.walks[1];
            const u16 offset[kMaxKernelDims] = {u16(d), u16(up - d * shape.walks[1]), u16(walk - up * shape.walks[2])};
            Position at = c.x;
            TILEWISE_ROLLED
            for (int i = 0; i < shape.x_boxes; ++i, x += shape.box_lines * shape.line * Element::bytes) {
                copy<true>(x, map_x, barrier, place.group * int(conv.c) + channel, at, offset);
                at.add(shape, c.box);
            }
        }
        c.y.add(shape, c.run);
        c.x.add(shape, c.run);
        --c.left;
        c.stage = c.stage + 1 == shape.stages ? 0 : c.stage + 1;
    }
    // The offsets move every pixel of a walk.
    template <bool is_x>
    TILEWISE_DEVICE void copy(SharedAddress to, const TensorMap& map, SharedAddress barrier, int c,
                              const Position& from, const u16 (&offset)[kMaxKernelDims]) const {
        constexpr int kFirst = kMaxKernelDims - kDims;
        int at[kDims];
        TILEWISE_UNROLL
        for (int i = 0; i < kDims; ++i) {
            at[i] = is_x ? from.at[i] * int(conv.stride[kFirst + i]) - int(conv.pad[kFirst + i]) : from.at[i];
        }
        if constexpr (kDims == 1) {
            copy_im2col(to, map, barrier, c, at[0], from.image, offset[2], kKeepNormal);
        } else if constexpr (kDims == 2) {
            copy_im2col(to, map, barrier, c, at[1], at[0], from.image, offset[2], offset[1], kKeepNormal);
        } else {
            copy_im2col(to, map, barrier, c, at[2], at[1], at[0], from.image, offset[2], offset[1], offset[0],
                        kKeepNormal);
        }
    }

    // ---- Computing ----

    // Where the taps of a product start in a stage's x.
    TILEWISE_DEVICE unsigned long long taps_at(int product) const {
        const int bytes = shape.line * Element::bytes, each = Core::kRows / shape.line,
                  tap = first_tap + product * each;
        const int of_block = first_tap + shape.block_taps, all = tap_count(conv);
        const int last = (of_block < all ? of_block : all) - 1, base = base_shift();
        const auto line_of = [&](int which) {
            const TapPlace at = tap_place(conv, shape, which);
            return at.walk * walk_lines() + at.shift - base;
        };
        const int start = tap <= last ? line_of(tap) : 0, apart = each > 1 && tap < last ? line_of(tap + 1) - start : 0;
        const auto leading = unsigned(apart * bytes), stride = unsigned(8 * bytes);
        return shape.line == Core::kRows ? operand_at<128>(unsigned(start * bytes), leading, stride)
                                         : operand_at<64>(unsigned(start * bytes), leading, stride);
    }
    TILEWISE_DEVICE void multiply(Core& core, SharedAddress stage,
                                  const unsigned long long (&taps)[Core::kRepeats]) const {
        const unsigned long long y = operand_at<kYLineBytes>(stage, 0, 8 * kYLineBytes), x = (stage + kYBytes) / 16;
        const auto x_step = static_cast<unsigned long long>(shape.line * Element::bytes * kDepth / 16);
        TILEWISE_UNROLL
        for (int k = 0; k < kPositions / kDepth; ++k) {
            TILEWISE_UNROLL
            for (int r = 0; r < Core::kRepeats; ++r) {
                wgmma<Element, Element, Config::tile_n, 1, 1>(core.sums[r], taps[r] + x + k * x_step,
                                                              y + k * (kYLineBytes * kDepth / 16), true);
            }
        }
    }

    TILEWISE_DEVICE void prepare() const {
        if (thread_index() == 0) {
            prefetch_map(map_y);
            prefetch_map(map_x);
            TILEWISE_ROLLED
            for (int i = 0; i < shape.stages; ++i) {
                barrier_init(full(i), 1);
                barrier_init(empty(i), 4 * kWaves);
            }
            barrier_init_fence();
        }
        TILEWISE_ROLLED
        for (int row = thread_index(); row < Config::tile_m; row += Config::threads) {
            const int unit = row / shape.line, tap = first_tap + unit, c = int(conv.c);
            const int rest = channel + row - unit * shape.line, group = kMerges ? rest / c : 0, own = rest - group * c;
            const bool is_there = unit < shape.block_taps && tap < tap_count(conv) && own < c && group < Config::merge;
            const u32 word = is_there ? u32(group) << Drain::kPlaceBits | u32(tap * c + own) : Drain::kNowhere;
            store_shared<4>(shared + SharedAddress(row * 4), Packet<4>{{word}});
        }
    }

    TILEWISE_DEVICE void work() const {
        griddep_launch();
        prepare();
        sync_block();
        griddep_wait();
        const int wave = warp_index() / 4;
        const bool copies_all = thread_index() == 0;
        Copies ahead = copies();
        if (copies_all) {
            TILEWISE_ROLLED
            for (int i = 0; i < shape.stages && ahead.left > 0; ++i) issue(ahead);
        }
        sync_warp();
        unsigned long long taps[Core::kRepeats];
        TILEWISE_UNROLL
        for (int r = 0; r < Core::kRepeats; ++r) taps[r] = taps_at(wave * Core::kRepeats + r);
        Core core;
        int stage = 0, previous = 0;
        unsigned parity = 0, previous_parity = 0;
        TILEWISE_ROLLED
        for (int step = 0; step < count; ++step) {
            barrier_wait(full(stage), parity);
            core.pin_all();
            wgmma_fence();
            multiply(core, stage_at(stage), taps);
            wgmma_commit();
            core.pin_all();
            if (step > 0) {  // the products of the step before have ended
                wgmma_wait<1>();
                if (lane_index() == 0) barrier_arrive(empty(previous));
                if (copies_all && ahead.left > 0) {
                    barrier_wait(empty(previous), previous_parity);
                    issue(ahead);
                }
                sync_warp();
            }
            previous = stage, previous_parity = parity;
            if (++stage == shape.stages) stage = 0, parity ^= 1;
        }
        wgmma_wait<0>();
        core.pin_all();
        sync_block();
        core.put(ring, wave, thread_index() % 128);
        Drain{args, place, shape.together, ring, shared}.run();
    }
};

}  // namespace tilewise::cuda

#define TILEWISE_CUDA_TAP_WEIGHT(Config)                                                                            \
    extern "C" __global__ void __launch_bounds__(Config::threads, Config::blocks_per_unit) TILEWISE_KERNEL_SYMBOL(  \
        const __grid_constant__ tilewise::KernelArgs args, const __grid_constant__ tilewise::cuda::TensorMap y,     \
        const __grid_constant__ tilewise::cuda::TensorMap x, const __grid_constant__ tilewise::cuda::TensorMap c) { \
        (void)c;                                                                                                    \
        tilewise::cuda::TapWeight<Config>(args, y, x).work();                                                       \
    }                                                                                                               \
    TILEWISE_CUDA_REDUCE_MANY(Config, tilewise::cuda::tap_weight_shape_of(args).together)
