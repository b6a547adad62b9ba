// SPDX-License-Identifier: MIT
// Backward weight on warpgroup products: dw[k][tap][c] = sum over pixels p of dy[p][k] * x[p * stride + tap][c], with
// the pixels as the reduction. A block has rows (tap, a line of channels c) and tile_n columns k of one group,
// over the runs of tile_k positions of its part (common/shifted_wgrad_args.hpp). The copy engine fetches of every run dy and as much
// of x as its taps reach, zeros where there is no pixel (im2col mode, whose bounding box is the image and what the filter reaches
// beyond it), into a ring of stages; every tap reads the same lines in shared memory, shifted by whole lines, which is where
// its descriptor starts. Rows of 32 channels are two taps to a product, at any distance (the descriptor's leading bytes). Groups of few
// channels are merged: a line holds those of `merge` groups, and of the product of all of them the diagonal is written.
// Floors: positions x rows x columns x 2 at wgmma's rate; shared memory reads 64 rows and tile_n columns for each product.
// A warp beside the warpgroups that compute issues the copies. What parts of the reduction have meets as in wgrad_drain.hpp.
#pragma once
#include "../../common/shifted_wgrad_args.hpp"
#include "../../gpu/reduce_many.hpp"
#include "../wgrad_drain.hpp"
#include "shifted_wgrad_mma.hpp"

namespace tilewise::cuda::shifted_wgrad {

TILEWISE_DEVICE const ShiftedWgradArgs& shifted_wgrad_args_of(const KernelArgs& args) {
    return TILEWISE_FAMILY_ARGS(ShiftedWgradArgs, args);
}

// A position among those of all images, and a distance between two: image, then the axes.
template <int kDims>
struct TapPosition {
    int image, at[kDims];  // outermost first

    TILEWISE_DEVICE TapPosition(const ShiftedWgradArgs& shape, int index) {
        TILEWISE_UNROLL
        for (int i = kDims - 1; i >= 0; --i) {
            const int extent = shape.extent[kMaxKernelDims - kDims + i], next = index / extent;
            at[i] = index - next * extent;
            index = next;
        }
        image = index;
    }
    TILEWISE_DEVICE void add(const ShiftedWgradArgs& shape, const TapPosition& distance) {
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

// Rows of results are (tap, c) and columns k, whichever are the rows of the products: with swap_ab (tap, c), 64 to a product; else 64
// channels k, and a warpgroup's product has all its taps side by side, which must be evenly apart. The latter reads shared memory
// less: the columns are read once for the 64 rows. What the drain knows of a config follows.
template <class Config>
struct ShiftedWgradTile : Config {
    static constexpr bool kSwapped = Config::swap_ab;
    static constexpr int tile_m = kSwapped ? Config::tile_m : Config::tile_n;
    static constexpr int tile_n = kSwapped ? Config::tile_n : Config::tile_m;
    static constexpr bool kStrips = Config::warp_m == 16;  // mma.sync, shifted_wgrad_mma.hpp
    static constexpr int wave_m = kSwapped ? Config::wave_m : Config::wave_n, wave_n = kStrips ? Config::wave_n : 1;
};

// The sums of a warpgroup, as the drain takes them: a line for every column.
template <class Tile>
struct ShiftedWgradCore {
    using Element = typename Tile::A;
    static constexpr int kRows = 64, kWaveM = Tile::tile_m / Tile::wave_m, kWaveN = Tile::tile_n;
    static constexpr int kRepeats = Tile::kSwapped ? kWaveM / kRows : 1;  // products for each 16 positions
    static constexpr int kColumns = Tile::kSwapped ? kWaveN : kWaveM;     // of a product
    static constexpr int kOwnSums = kColumns / 2, kGroups = Tile::merge;
    static constexpr bool kFew = false;
    static constexpr int kPitch = wgrad_sum_pitch(kWaveM), kSumBytes = kWaveN * kPitch;
    static_assert((!Tile::kSwapped || kWaveM % kRows == 0) && Tile::warp_m == kRows && Tile::warp_n == kColumns &&
                  Element::bytes == 2);
    static_assert(Tile::kSwapped || kWaveN == kRows);

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
        const int along_rows = Tile::kSwapped ? 4 : kPitch, along_columns = Tile::kSwapped ? kPitch : 4;
        const SharedAddress own = shared + SharedAddress(wave * kSumBytes + thread % 4 * 2 * along_columns +
                                                         (thread / 32 * 16 + thread % 32 / 4) * along_rows);
        TILEWISE_UNROLL
        for (int r = 0; r < kRepeats; ++r) {
            TILEWISE_UNROLL
            for (int i = 0; i < kOwnSums; i += 2) {
                const int column = i / 4 * 8, row = r * kRows + i / 2 % 2 * 8;
                const SharedAddress to = own + SharedAddress(column * along_columns + row * along_rows);
                if constexpr (Tile::kSwapped) {
                    store_shared_float(to, sums[r][i]);
                    store_shared_float(to + SharedAddress(along_columns), sums[r][i + 1]);
                } else {
                    store_shared_float2(to, sums[r][i], sums[r][i + 1]);
                }
            }
        }
    }
};

template <class Tile, bool strips = Tile::kStrips>
struct ShiftedWgradCoreOf {
    using Type = ShiftedWgradCore<Tile>;
};
template <class Tile>
struct ShiftedWgradCoreOf<Tile, true> {
    using Type = ShiftedWgradMmaCore<Tile>;
};

template <class GivenConfig>
struct ShiftedWgrad {
    using Config = ShiftedWgradTile<GivenConfig>;
    using Core = typename ShiftedWgradCoreOf<Config>::Type;
    using Element = typename Config::A;
    using Drain = WgradDrain<Config, Core>;
    using Position = TapPosition<Config::ndim>;
    static constexpr bool kMerges = Config::merge > 1;
    static constexpr int kDims = Config::ndim, kPositions = Config::tile_k, kDepth = 16;
    // Warps that compute: all but the last, or the last four.
    static constexpr int kWarps = Config::kStrips ? Config::wave_n * Config::wave_k : 4 * Config::wave_m;
    static constexpr int kYLineBytes = shifted_wgrad_line_bytes(Config::tile_n),
                         kYLines = shifted_wgrad_y_lines(Config::tile_n);
    static constexpr int kYBytes = shifted_wgrad_y_bytes(kPositions, Config::tile_n);
    static_assert(Config::tile_n * Element::bytes <= kYLines * kYLineBytes, "lines of columns for each position");
    static_assert(Config::threads == 32 * (kWarps + (Config::kStrips ? 1 : 4)) && kPositions % kDepth == 0 &&
                  kPositions <= 256 && kYBytes % 1024 == 0);
    // A word for every row of the product (where its result goes), and for every tap (where in a stage's x it starts, in lines).
    static constexpr int kTapWords = Config::tile_m * 4, kTables = kTapWords + (Config::tile_m / 16 * 4 + 15) / 16 * 16;
    static constexpr int kBarrierBytes = kShiftedWgradMostStages * 16;
    static constexpr int kRing = (kTables + kBarrierBytes + 1023) / 1024 * 1024;  // where the stages begin
    static constexpr int kSums = Config::wave_m * Config::wave_n * Config::wave_k * Core::kSumBytes;
    static_assert(kRing + kSums <= Config::shared_bytes, "sums take the place of the stages");

    const KernelArgs& args;
    const TensorMap &map_y, &map_x;
    const KernelConv& conv = args.conv;
    const ShiftedWgradArgs& shape = shifted_wgrad_args_of(args);
    const SharedAddress shared = shared_start(), ring = shared + kRing;
    WgradPlace place;
    int first_tap, channel;  // of the block's rows; channels of x in the group
    int base_shift;          // of the first tap: x begins there
    int begin, count;        // runs of positions

    TILEWISE_DEVICE ShiftedWgrad(const KernelArgs& kernel_args, const TensorMap& y, const TensorMap& x)
        : args(kernel_args), map_y(y), map_x(x) {
        const int block_taps = shape.block_taps;
        const int lines = kMerges ? 1 : (int(conv.c) + shape.line - 1) / shape.line;
        const int tap_tiles = (tap_count(conv) + block_taps - 1) / block_taps;
        const int tiles_n = kMerges ? 1 : (int(conv.k) + Config::tile_n - 1) / Config::tile_n;
        place = WgradPlace::of_block<Config>(args, shape.together, tap_tiles * lines, tiles_n);
        const int tile = place.row / Config::tile_m, of_taps = tile / lines;
        first_tap = of_taps * block_taps, channel = (tile - of_taps * lines) * shape.line;
        base_shift = tap_place(conv, shape, first_tap).shift;
        const int each = shape.steps / args.split_k, remainder = shape.steps - each * args.split_k;
        begin = place.part * each + (place.part < remainder ? place.part : remainder);
        count = each + (place.part < remainder ? 1 : 0);
    }

    TILEWISE_DEVICE SharedAddress full(int stage) const { return shared + SharedAddress(kTables + stage * 16); }
    TILEWISE_DEVICE SharedAddress empty(int stage) const { return full(stage) + 8; }
    TILEWISE_DEVICE unsigned stage_bytes() const { return unsigned(kYBytes + shape.x_bytes()); }
    TILEWISE_DEVICE SharedAddress stage_at(int stage) const { return ring + SharedAddress(stage) * stage_bytes(); }

    // ---- Copying: a warp, each lane one of a stage's copies ----

    // The first lanes copy a line of dy each, the others a run of pixels of one walk of x.
    struct Copies {
        bool is_x, is_one;
        Position at, run;  // in the next stage, and how far it is to the one after
        int to, channel;
        u16 offset[kMaxKernelDims];
    };
    TILEWISE_DEVICE Copies copies() const {
        const int lane = lane_index(), which = lane < kYLines ? 0 : lane - kYLines, walk = which / shape.x_boxes;
        const int box = which - walk * shape.x_boxes, up = walk / shape.walks[2], d = up / shape.walks[1];
        const bool is_x = lane >= kYLines;
        const int first = begin * kPositions + (is_x ? base_shift + box * shape.box_lines : 0);
        Copies c{is_x, lane < kYLines + shape.x_walks() * shape.x_boxes, Position(shape, first),
                 Position(shape, kPositions)};
        c.to = is_x ? kYBytes + which * shape.box_lines * shape.line * Element::bytes : lane * kPositions * kYLineBytes;
        c.channel = is_x ? place.group * int(conv.c) + channel
                         : place.group * int(conv.k) + place.col + lane * (kYLineBytes / Element::bytes);
        c.offset[0] = u16(d), c.offset[1] = u16(up - d * shape.walks[1]), c.offset[2] = u16(walk - up * shape.walks[2]);
        return c;
    }
    TILEWISE_DEVICE void copy_all() const {
        Copies own = copies();
        int stage = 0;
        unsigned parity = 1;  // of stages that nobody has filled yet
        TILEWISE_ROLLED
        for (int step = 0; step < count; ++step) {
            barrier_wait(empty(stage), parity);
            if (lane_index() == 0) barrier_expect(full(stage), stage_bytes());
            sync_warp();
            if (own.is_one) copy(own, stage_at(stage) + SharedAddress(own.to), full(stage));
            sync_warp();
            own.at.add(shape, own.run);
            if (++stage == shape.stages) stage = 0, parity ^= 1;
        }
    }
    TILEWISE_DEVICE void copy(const Copies& own, SharedAddress to, SharedAddress barrier) const {
        constexpr int kFirst = kMaxKernelDims - kDims;
        const TensorMap& map = own.is_x ? map_x : map_y;
        int at[kDims];
        TILEWISE_UNROLL
        for (int i = 0; i < kDims; ++i) {
            at[i] = own.at.at[i];
            if (own.is_x) at[i] = at[i] * int(conv.stride[kFirst + i]) - int(conv.pad[kFirst + i]);
        }
        const auto& offset = own.offset;  // moves every pixel of a walk
        if constexpr (kDims == 1) {
            copy_im2col(to, map, barrier, own.channel, at[0], own.at.image, offset[2], kKeepNormal);
        } else if constexpr (kDims == 2) {
            copy_im2col(to, map, barrier, own.channel, at[1], at[0], own.at.image, offset[2], offset[1], kKeepNormal);
        } else {
            copy_im2col(to, map, barrier, own.channel, at[2], at[1], at[0], own.at.image, offset[2], offset[1],
                        offset[0], kKeepNormal);
        }
    }

    // ---- Computing ----

    // Where the taps of a product start in a stage's x.
    template <class AnyCore>
    TILEWISE_DEVICE unsigned long long taps_at(int product) const {
        constexpr int kChannels = Config::kSwapped ? AnyCore::kRows : AnyCore::kColumns;  // of all its taps
        const int bytes = shape.line * Element::bytes, each = kChannels / shape.line;
        const SharedAddress words = shared + SharedAddress(kTapWords + product * each * 4);
        const int start = int(load_shared<4>(words).words[0]);
        const int apart = each > 1 ? int(load_shared<4>(words + 4).words[0]) - start : 0;
        const auto leading = unsigned(apart * bytes), stride = unsigned(8 * bytes);
        return shape.line * Element::bytes == 128 ? operand_at<128>(unsigned(start * bytes), leading, stride)
                                                  : operand_at<64>(unsigned(start * bytes), leading, stride);
    }
    template <class AnyCore>
    TILEWISE_DEVICE void multiply(AnyCore& core, SharedAddress stage,
                                  const unsigned long long (&taps)[AnyCore::kRepeats]) const {
        // In a cluster addresses carry the block's number above those bits that a descriptor has room for.
        constexpr SharedAddress kOfBlock = 0x3ffff;
        const unsigned long long y = operand_at<kYLineBytes>(stage, kPositions * kYLineBytes, 8 * kYLineBytes);
        const unsigned long long x = ((stage + kYBytes) & kOfBlock) / 16;
        const auto x_step = static_cast<unsigned long long>(shape.line * Element::bytes * kDepth / 16);
        TILEWISE_UNROLL
        for (int k = 0; k < kPositions / kDepth; ++k) {
            const unsigned long long y_at = y + k * (kYLineBytes * kDepth / 16);
            TILEWISE_UNROLL
            for (int r = 0; r < AnyCore::kRepeats; ++r) {
                const unsigned long long x_at = taps[r] + x + k * x_step;
                wgmma<Element, Element, AnyCore::kColumns, 1, 1>(core.sums[r], Config::kSwapped ? x_at : y_at,
                                                                 Config::kSwapped ? y_at : x_at, true);
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
                barrier_init(empty(i), kWarps);
            }
            barrier_init_fence();
        }
        TILEWISE_ROLLED
        for (int row = thread_index(); row < Config::tile_m; row += Config::threads) {
            const int each = Config::kStrips ? 16 : shape.line;  // rows of a tap
            const int unit = row / each, tap = first_tap + unit, c = int(conv.c);
            const int rest = channel + row - unit * each, group = kMerges ? rest / c : 0, own = rest - group * c;
            const bool is_there = unit < shape.block_taps && tap < tap_count(conv) && own < c && group < Core::kGroups;
            const u32 word = is_there ? u32(group) << Drain::kPlaceBits | u32(tap * c + own) : Drain::kNowhere;
            store_shared<4>(shared + SharedAddress(row * 4), Packet<4>{{word}});
            if (row != unit * each) continue;
            // Rows without a tap read what the last one does.
            const int of_block = first_tap + shape.block_taps, all = tap_count(conv);
            const int last = (of_block < all ? of_block : all) - 1;
            const TapPlace at = tap_place(conv, shape, tap < last ? tap : last);
            const int start = at.walk * shape.x_boxes * shape.box_lines + at.shift - base_shift;
            store_shared<4>(shared + SharedAddress(kTapWords + unit * 4), Packet<4>{{u32(start)}});
        }
    }

    // The products of the block's runs, by a warpgroup.
    template <class AnyCore>
    TILEWISE_DEVICE void multiply_all(AnyCore& core, int wave) const {
        unsigned long long taps[AnyCore::kRepeats];
        TILEWISE_UNROLL
        for (int r = 0; r < AnyCore::kRepeats; ++r) taps[r] = taps_at<AnyCore>(wave * AnyCore::kRepeats + r);
        int stage = 0, previous = 0;
        unsigned parity = 0;
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
            }
            previous = stage;
            if (++stage == shape.stages) stage = 0, parity ^= 1;
        }
        wgmma_wait<0>();
        core.pin_all();
    }

    // The same of a warp.
    template <class AnyCore>
    TILEWISE_DEVICE void multiply_strips(AnyCore& core) const {
        int stage = 0;
        unsigned parity = 0;
        TILEWISE_ROLLED
        for (int step = 0; step < count; ++step) {
            barrier_wait(full(stage), parity);
            core.template multiply<kPositions>(stage_at(stage), stage_at(stage) + kYBytes);
            sync_warp();
            if (lane_index() == 0) barrier_arrive(empty(stage));
            if (++stage == shape.stages) stage = 0, parity ^= 1;
        }
    }

    TILEWISE_DEVICE void work() const {
        griddep_launch();
        prepare();
        sync_block();
        griddep_wait();
        if (warp_index() < kWarps) {
            if constexpr (Config::kStrips) {
                Core core(shared + kTapWords);
                multiply_strips(core);
                named_sync(1, kWarps * 32);  // nobody reads the stages any more
                core.put(ring);
            } else {
                Core core;
                multiply_all(core, warp_index() / 4);
                named_sync(1, kWarps * 32);
                core.put(ring, warp_index() / 4, thread_index() % 128);
            }
        } else if (warp_index() == kWarps) {
            copy_all();
        }
        Drain{args, place, shape.together, ring, shared}.run();
    }
};

}  // namespace tilewise::cuda::shifted_wgrad

#define TILEWISE_CUDA_SHIFTED_WGRAD(Config)                                                                         \
    extern "C" __global__ void __launch_bounds__(Config::threads, Config::blocks_per_unit) TILEWISE_KERNEL_SYMBOL(  \
        const __grid_constant__ tilewise::KernelArgs args, const __grid_constant__ tilewise::cuda::TensorMap y,     \
        const __grid_constant__ tilewise::cuda::TensorMap x, const __grid_constant__ tilewise::cuda::TensorMap c) { \
        (void)c;                                                                                                    \
        tilewise::cuda::shifted_wgrad::ShiftedWgrad<Config>(args, y, x).work();                                     \
    }                                                                                                               \
    TILEWISE_GPU_REDUCE_MANY(Config, tilewise::cuda::shifted_wgrad::shifted_wgrad_args_of(args).together)
