// SPDX-License-Identifier: MIT
// Forward and backward data of grouped convolutions with few channels per group, with mma.sync on patches of pixels that are
// staged once (halo_patch.hpp). A block keeps the weights of its groups in shared memory (halo_weights.hpp) and walks over
// tiles of output pixels; ldmatrix takes an address for every row, so a tap is a distance. The next patches are on their way
// during the arithmetic of this one. Backward data of a strided convolution computes the classes of input positions
// one after the other from the same patch of dy.
//
// Floors on an H200, bf16, 3x3, groups of 32 channels, 56 x 56 pixels, for each output pixel of a group:
//   memory   64 bytes read, 64 written: 30 ps at 4.27 TB/s
//   ldmatrix 9 x 64 bytes of pixels, and 18 KB of weights for every 64 pixels: 5 + 2.3 cycles of 128 bytes: 32 ps in 132 units
#pragma once
#include "halo_drain.hpp"
#include "halo_weights.hpp"

namespace tilewise::cuda {

template <class Config>
struct HaloConv {
    using T = typename Config::A;
    using Out = typename Config::Out;
    using Sum = SumOf<T>;
    using Drain = HaloDrain<Config>;
    static constexpr bool kBackward = Config::direction == Direction::backward_data;
    static constexpr int kStepM = 16, kStepN = 8, kMatrix = 8, kStepBytes = 32, kLanes = 32;
    static constexpr int kWaveM = Config::tile_m / Config::wave_m;
    static constexpr int kColumns =
        Config::tile_n / Config::wave_n;  // of a product: the waves along n take turns at products
    static constexpr int kStepsM = kWaveM / kStepM, kStepsN = kColumns / kStepN, kPairsN = (kStepsN + 1) / 2;
    static constexpr int kBuffers = Config::stages < 1 ? 1 : Config::stages;
    static constexpr int kWarps = Config::wave_m * Config::wave_n;
    static_assert(Config::warp_m == kStepM && Config::warp_n == kStepN && Config::warp_k * T::bytes == kStepBytes);
    static_assert(kSame<typename Config::B, T>, "operands of one type");
    static_assert(!kBackward || T::bytes == 2, "ldmatrix turns round elements of 16 bits only");
    static_assert(Config::threads == kWarps * kLanes, "a thread for every lane of every wave");

    const KernelArgs& args;
    const HaloLaunch& launch;
    const HaloPlan& plan;
    SharedAddress shared = shared_start();
    int warp = warp_index();
    int first_row = warp / Config::wave_n * kWaveM;  // of the warp, in the tile

    u32 pixel[kStepsM];  // where the patch begins for this lane's row of every step
    u32 weight_lane;     // this lane's line within a step's weights

    using Patch = HaloPatch<T, Config::threads>;
    using Rows = HaloRows<Config::tile_m, Config::threads>;
    typename Patch::Share share;
    TILEWISE_DEVICE Patch patch() const { return {plan.patch, shared + plan.patch_table}; }
    TILEWISE_DEVICE Rows rows() const { return {shared + plan.row_table}; }
    TILEWISE_DEVICE HaloWeights<Config> weights() const { return {args.conv, launch.axes, plan, shared}; }
    TILEWISE_DEVICE const KernelActivation& staged() const { return kBackward ? args.conv.y : args.conv.x; }
    TILEWISE_DEVICE SharedAddress buffer(int index) const { return shared + plan.patches + index * plan.patch_bytes; }

    TILEWISE_DEVICE explicit HaloConv(const KernelArgs& kernel_args)
        : args(kernel_args),
          launch(reinterpret_cast<const HaloLaunch&>(kernel_args.geometry)),
          plan(launch.plan),
          share(patch().share()) {}

    // ---- Which work is whose: a slab is the groups of a tile and a range of their columns ----

    struct Slab {
        int group, column;  // the first of each
    };
    TILEWISE_DEVICE Slab slab_at(int index) const {
        const int set = plan.column_tiles == 1 ? index : index / plan.column_tiles;
        return {set * Config::merge, (index - set * plan.column_tiles) * kColumns};
    }

    // A tile of pixels of a slab, and the way to the next: columns first, then rows, depths, images and slabs.
    struct Place {
        int slab;
        HaloOrigin origin;
    };
    TILEWISE_DEVICE Place place_of(int unit) const {
        Place p;
        TILEWISE_UNROLL
        for (int d = kMaxKernelDims - 1; d >= 0; --d) {
            const int next = unit / launch.tiles[d];
            p.origin.output[d] = (unit - next * launch.tiles[d]) * launch.tile.extent[d];
            unit = next;
        }
        p.slab = unit / launch.image_tiles;
        p.origin.image = (unit - p.slab * launch.image_tiles) * launch.tile.images;
        return p;
    }
    TILEWISE_DEVICE void advance(Place& p) const {
        TILEWISE_UNROLL
        for (int d = kMaxKernelDims - 1; d >= 0; --d) {
            p.origin.output[d] += launch.tile.extent[d];
            if (p.origin.output[d] < launch.tiles[d] * launch.tile.extent[d]) return;
            p.origin.output[d] = 0;
        }
        p.origin.image += launch.tile.images;
        if (p.origin.image < launch.image_tiles * launch.tile.images) return;
        p.origin.image = 0;
        ++p.slab;
    }

    TILEWISE_DEVICE void copy_patch(const Place& place, int index) const {
        const Index channel = slab_at(place.slab).group * staged().group_stride;
        const void* from = static_cast<const typename T::Storage*>(args.a.data) + channel;
        patch().copy(buffer(index), from, launch.axes, int(args.conv.images), staged(), place.origin, share);
    }
    TILEWISE_DEVICE void load_weights(int slab) const {
        const Slab s = slab_at(slab);
        const Index group_weights = args.conv.k * args.conv.c * weights().taps();
        weights().load(static_cast<const typename T::Storage*>(args.b.data) + s.group * group_weights, s.column);
    }

    TILEWISE_DEVICE void prepare() {
        patch().make_table(launch.axes, staged());
        rows().make_table(launch.axes, launch.tile);
        weights().make_class_table();
        if (plan.classes > 1) sync_block();
        weights().make_tap_table();
        sync_block();
    }
    TILEWISE_DEVICE void find_lanes() {
        const int lane = lane_index();
        TILEWISE_UNROLL
        for (int i = 0; i < kStepsM; ++i) {
            pixel[i] = rows().patch_offset(plan.patch, first_row + i * kStepM + lane % kStepM);
        }
        const int inner = lane % kMatrix, low = lane / kMatrix % 2, high = lane / kStepM;
        weight_lane = kBackward ? (low * kMatrix + inner) * plan.weight_pitch + high * kChunkBytes
                                : (high * kMatrix + inner) * plan.weight_pitch + low * kChunkBytes;
    }

    TILEWISE_DEVICE void work() {
        const int block = int(block_index());
        int left = launch.units + (block < launch.longer ? 1 : 0);  // tiles that are not copied yet
        const int first = block * launch.units + (block < launch.longer ? block : launch.longer);
        Place place = place_of(first), ahead = place;
        int loaded = place.slab, count = left;
        prepare();
        griddep_wait();
        const auto copy_next = [&](int index) {
            if (left > 0) {
                copy_patch(ahead, index);
                advance(ahead);
                --left;
            }
            commit_copies();  // a group for every tile, there or not, so that counting groups is counting tiles
        };
        load_weights(loaded);
        TILEWISE_ROLLED
        for (int s = 0; s < kBuffers - 1; ++s) copy_next(s);
        weights().make_offsets();
        find_lanes();
        int reading = 0, filling = kBuffers - 1;
        TILEWISE_ROLLED
        for (; count > 0; --count, advance(place)) {
            if constexpr (kBuffers == 1) {
                sync_block();  // all are done with the patch before
                copy_next(0);
            }
            if (place.slab != loaded) {
                sync_block();  // all are done with the weights before
                loaded = place.slab;
                load_weights(loaded);
                commit_copies();
                wait_copies<0>();
            } else {
                wait_copies<(kBuffers > 1 ? kBuffers - 2 : 0)>();
            }
            sync_block();  // this tile's patch is there for all, and all are done with the buffer filled next
            if constexpr (kBuffers > 1) copy_next(filling);
            compute(buffer(reading), slab_at(loaded), place.origin);
            reading = reading + 1 == kBuffers ? 0 : reading + 1;
            filling = filling + 1 == kBuffers ? 0 : filling + 1;
        }
        wait_copies<0>();
    }

    // ---- One tile: every product and class; the warps along n share them ----

    TILEWISE_DEVICE void compute(SharedAddress patch_at, const Slab& slab, const HaloOrigin& origin) const {
        const Drain drain{args, shared + plan.drain + warp * plan.drain_bytes,
                          shared + plan.row_table + first_row * kHaloEntryBytes};
        TILEWISE_ROLLED
        for (int which = 0; which < plan.classes; ++which) {
            const HaloEntry chunks = weights().class_entry(which);
            typename Drain::Target target = target_of(which, origin);
            drain.find_rows(target);
            TILEWISE_ROLLED
            for (int product = warp % Config::wave_n; product < plan.products; product += Config::wave_n) {
                Sums sums = {};
                multiply(sums, patch_at + product * plan.chunks * kChunkBytes, product, int(chunks.place),
                         int(chunks.offset));
                const int group_columns = int(kBackward ? args.conv.c : args.conv.k);
                drain.run(sums, target,
                          {slab.group + product * plan.product_groups, group_columns, slab.column,
                           plan.out_channels - slab.column});
            }
        }
    }
    TILEWISE_DEVICE typename Drain::Target target_of(int which, const HaloOrigin& origin) const {
        int of_class[kMaxKernelDims], rest = which;
        TILEWISE_UNROLL
        for (int d = kMaxKernelDims - 1; d >= 0; --d) {
            const int classes = launch.axes[d].classes, next = classes == 1 ? rest : rest / classes;
            of_class[d] = rest - next * classes;
            rest = next;
        }
        typename Drain::Target target;
        Index row = origin.image;
        const auto range = [&](int d) {
            const HaloAxis& axis = launch.axes[d];
            row = row * axis.outputs + origin.output[d] * axis.classes + of_class[d];
            return HaloRange(origin.output[d], launch.tile.extent[d],
                             halo_divide_up(axis.outputs - of_class[d], axis.classes));
        };
        const HaloRange depth = range(0), height = range(1), column = range(2);
        target.inside = halo_bounds({origin.image, launch.tile.images, int(args.conv.images)}, depth, height, column);
        target.first_row = row;
        return target;
    }

    struct Operands {
        u32 a[kStepsM][4];
        u32 b[kStepsN][2];
    };
    // Two sets of operands where registers allow it beside sums, addresses and the like.
    static constexpr int kOtherRegisters = 46, kOperandRegisters = 4 * kStepsM + 2 * kStepsN;
    static constexpr int kThreadRegisters = 65536 / (Config::threads * Config::blocks_per_unit);
    static constexpr bool kFetchAhead = kStepsM * kStepsN * 4 + 2 * kOperandRegisters + kOtherRegisters <=
                                        (kThreadRegisters < 255 ? kThreadRegisters : 255);

    // Where a step's operands are, for this lane.
    struct Cursor {
        SharedAddress patch, weights, offset_entry;
        u32 offset;  // of the step's pixels
    };
    TILEWISE_DEVICE int weight_step() const { return kBackward ? 2 * kMatrix * plan.weight_pitch : kStepBytes; }
    // The offset after the last step's is some other word of shared memory, and not used.
    TILEWISE_DEVICE void advance(Cursor& at) const {
        at.weights += weight_step(), at.offset_entry += 2 * sizeof(u32);
        at.offset = load_shared<4>(at.offset_entry).words[0];
    }

    TILEWISE_DEVICE void fetch_pixels(u32 (&to)[kStepsM][4], const Cursor& at) const {
        const SharedAddress from = at.patch + at.offset;
        TILEWISE_UNROLL
        for (int i = 0; i < kStepsM; ++i) load_matrices<false>(from + pixel[i], to[i]);
    }
    // Weights of two steps of n, or of the last one: pair j.
    TILEWISE_DEVICE void fetch_weights(u32 (&to)[kStepsN][2], int j, const Cursor& at) const {
        const SharedAddress from = at.weights + j * (kBackward ? 2 * kChunkBytes : 2 * kStepN * plan.weight_pitch);
        if (2 * j + 1 < kStepsN) {
            u32 two[4];
            load_matrices<kBackward>(from, two);
            to[2 * j][0] = two[0], to[2 * j][1] = two[1];
            to[2 * j + 1][0] = two[2], to[2 * j + 1][1] = two[3];
        } else {
            load_matrices<kBackward>(from, to[2 * j]);
        }
    }
    TILEWISE_DEVICE void fetch(Operands& to, Cursor& at) const {
        fetch_pixels(to.a, at);
        TILEWISE_UNROLL
        for (int j = 0; j < kPairsN; ++j) fetch_weights(to.b, j, at);
        advance(at);
    }
    // The second chunk of a step that has only one.
    static TILEWISE_DEVICE void clear_second(Operands& of) {
        TILEWISE_UNROLL
        for (int i = 0; i < kStepsM; ++i) of.a[i][2] = of.a[i][3] = 0;
        TILEWISE_UNROLL
        for (int j = 0; j < kStepsN; ++j) of.b[j][1] = 0;
    }
    using Sums = Sum[kStepsM][kStepsN][4];
    static TILEWISE_DEVICE void multiply_columns(Sums& sums, const Operands& from, int j) {
        TILEWISE_UNROLL
        for (int i = 0; i < kStepsM; ++i) multiply_add<T, T>(sums[i][j], from.a[i], from.b[j][0], from.b[j][1]);
    }
    static TILEWISE_DEVICE void multiply_step(Sums& sums, const Operands& from) {
        TILEWISE_UNROLL
        for (int j = 0; j < kStepsN; ++j) multiply_columns(sums, from, j);
    }

    // `chunks` of a product's reduction, from step `first` on.
    TILEWISE_DEVICE void multiply(Sums& sums, SharedAddress patch_at, int product, int first, int chunks) const {
        Cursor at;
        at.patch = patch_at;
        at.weights = shared + plan.weights + product * plan.product_bytes + first * weight_step() + weight_lane;
        at.offset_entry = shared + plan.offsets + (2 * first + lane_index() / kStepM) * sizeof(u32);
        at.offset = load_shared<4>(at.offset_entry).words[0];
        int steps = chunks / 2;
        if constexpr (kFetchAhead) {
            if (steps > 0) multiply_ahead(sums, at, steps);
        } else {
            TILEWISE_ROLLED
            for (; steps > 0; --steps) {
                Operands operands;
                fetch_pixels(operands.a, at);
                TILEWISE_UNROLL
                for (int j = 0; j < kPairsN; ++j) {
                    fetch_weights(operands.b, j, at);
                    multiply_columns(sums, operands, 2 * j);
                    if (2 * j + 1 < kStepsN) multiply_columns(sums, operands, 2 * j + 1);
                }
                advance(at);
            }
        }
        if (chunks % 2 != 0) {
            Operands operands;
            fetch(operands, at);
            clear_second(operands);
            multiply_step(sums, operands);
        }
    }
    // The next step is fetched ahead of the arithmetic of this one.
    TILEWISE_DEVICE void multiply_ahead(Sums& sums, Cursor& at, int steps) const {
        Operands operands[2];
        fetch(operands[0], at);
        TILEWISE_ROLLED
        for (; steps > 2; steps -= 2) {
            fetch(operands[1], at);
            multiply_step(sums, operands[0]);
            fetch(operands[0], at);
            multiply_step(sums, operands[1]);
        }
        if (steps == 2) fetch(operands[1], at);
        multiply_step(sums, operands[0]);
        if (steps == 2) multiply_step(sums, operands[1]);
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        griddep_launch();
        HaloConv(args).work();
    }
};

}  // namespace tilewise::cuda

#define TILEWISE_CUDA_HALO_CONV(Config)                                                    \
    extern "C" __global__ void __launch_bounds__(Config::threads, Config::blocks_per_unit) \
        tilewise_kernel(const __grid_constant__ tilewise::KernelArgs args) {               \
        tilewise::cuda::HaloConv<Config>::run(args);                                       \
    }
