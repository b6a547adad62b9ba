// SPDX-License-Identifier: MIT
// Forward and backward data of grouped convolutions with few channels per group, with mma.sync on patches of pixels that are
// staged once, by all threads (line_feed.hpp) or by the copy engine (patch_box_conv.hpp). A block keeps the weights of its
// groups in shared memory (patch_filter.hpp) and walks over tiles of output pixels; ldmatrix takes an address for every row, so
// a tap is a distance. The next patches are on their way during the arithmetic of this one. Backward data of a strided
// convolution computes the classes of input positions one after the other from the same patch of dy.
//
// Floors on an H200, bf16, 3x3, groups of 32 channels, 56 x 56 pixels, for each output pixel of a group:
//   memory   64 bytes read, 64 written: 30 ps at 4.27 TB/s
//   ldmatrix 9 x 64 bytes of pixels, and 18 KB of weights for every 64 pixels: 5 + 2.3 cycles of 128 bytes: 32 ps in 132 units
#pragma once
#include "../patch_drain.hpp"
#include "line_feed.hpp"
#include "patch_filter.hpp"

namespace tilewise::cuda::patch_conv {

template <class Config, class Feed = LineFeed<Config>>
struct PatchConv {
    using T = typename Config::A;
    using Out = typename Config::Out;
    using Sum = SumOf<T>;
    using Drain = PatchDrain<Config>;
    using Chain = ChainOf<Config>;
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
    // 3 x 3 taps on tiles of 16 columns: the steps of a warp are rows of pixels below each other, and what one reads for a tap the
    // next reads for the tap above it.
    static constexpr bool kSharesRows = Config::filter_3x3;
    static constexpr int kTaps = 3;  // of a column of such a filter
    static_assert(Config::threads == kWarps * kLanes, "a thread for every lane of every wave");

    const KernelArgs& args;
    const PatchConvArgs& launch;
    const PatchConvLayout& plan;
    SharedAddress shared = shared_start();
    int warp = warp_index();
    int first_row = warp / Config::wave_n * kWaveM;  // of the warp, in the tile

    u32 pixel[kStepsM];  // where the patch begins for this lane's row of every step
    u32 weight_lane;     // this lane's line within a step's weights

    using Rows = PatchRows<Config::tile_m, Config::threads>;
    Feed feed;
    const bool leaves_as_boxes;
    typename Drain::Lane drain_lane;
    TILEWISE_DEVICE Rows rows() const { return {shared + plan.row_table}; }
    TILEWISE_DEVICE Drain drain() const {
        return {args, shared + plan.drain + warp * plan.drain_bytes,
                shared + plan.row_table + first_row * kPatchEntryBytes};
    }
    TILEWISE_DEVICE PatchFilter<Config> weights() const { return {args.conv, launch.axes, plan, shared}; }
    TILEWISE_DEVICE const KernelActivation& staged() const { return kBackward ? args.conv.y : args.conv.x; }
    TILEWISE_DEVICE SharedAddress buffer(int index) const { return shared + plan.patches + index * plan.patch_bytes; }

    template <class... Maps>
    TILEWISE_DEVICE explicit PatchConv(const KernelArgs& kernel_args, const Maps&... maps)
        : args(kernel_args),
          launch(TILEWISE_FAMILY_ARGS(PatchConvArgs, kernel_args)),
          plan(launch.plan),
          feed(plan, maps...),
          leaves_as_boxes(Feed::kBoxes && plan.out_stages > 0 && !(Chain::kFixed && Chain::kReadsTensors) &&
                          Drain::is_made_in_registers(args)) {}
    // Where the bytes of a patch are that without a swizzle would be at this address.
    TILEWISE_DEVICE SharedAddress stored(SharedAddress address) const {
        if constexpr (Feed::kBoxes) return address ^ (address >> 3 & u32(plan.swizzle));
        return address;
    }

    // ---- Which work is whose: a slice is the groups of a tile and a range of their columns ----

    struct Slice {
        int group, column;  // the first of each
    };
    TILEWISE_DEVICE Slice slice_at(int index) const {
        const int set = plan.column_tiles == 1 ? index : int(u32(index) / u32(plan.column_tiles));
        return {set * Config::merge, (index - set * plan.column_tiles) * kColumns};
    }

    // A tile of pixels of a slice, and the way to the next: columns first, then rows, depths, images and slices.
    struct Place {
        int slice;
        PatchOrigin origin;
    };
    TILEWISE_DEVICE Place place_of(int unit) const {
        Place p;
        TILEWISE_UNROLL
        for (int d = kMaxKernelDims - 1; d >= 0; --d) {
            const int next = int(u32(unit) / u32(launch.tiles[d]));
            p.origin.output[d] = (unit - next * launch.tiles[d]) * launch.tile.extent[d];
            unit = next;
        }
        p.slice = int(u32(unit) / u32(launch.image_tiles));
        p.origin.image = (unit - p.slice * launch.image_tiles) * launch.tile.images;
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
        ++p.slice;
    }

    TILEWISE_DEVICE void copy_patch(const Place& place, int index) const {
        const Index channel = slice_at(place.slice).group * staged().group_stride;
        feed.copy(args, launch, staged(), shared, index, channel, place.origin);
    }
    TILEWISE_DEVICE void load_weights(int slice) const {
        const Slice s = slice_at(slice);
        const Index group_weights = args.conv.k * args.conv.c * weights().taps();
        weights().load(static_cast<const typename T::Storage*>(args.b.data) + s.group * group_weights, s.column);
    }

    // Prepares what does not depend on the tile; reads nothing of global memory.
    TILEWISE_DEVICE void prepare() {
        rows().make_table(launch.axes, launch.tile);
        weights().count_classes();
        sync_block();
        if (weights().has_classes()) {
            weights().number_classes();
            sync_block();
            weights().make_tap_table();
            sync_block();
        }
        weights().make_offsets();
        const int lane = lane_index();
        TILEWISE_UNROLL
        for (int i = 0; i < kStepsM; ++i) {
            pixel[i] = rows().patch_offset(plan.patch, first_row + i * kStepM + lane % kStepM);
        }
        const int inner = lane % kMatrix, low = lane / kMatrix % 2, high = lane / kStepM;
        weight_lane = kBackward ? (low * kMatrix + inner) * plan.weight_pitch + high * kChunkBytes
                                : (high * kMatrix + inner) * plan.weight_pitch + low * kChunkBytes;
        drain().find_rows(drain_lane);
    }

    // Every step but the first few computes a tile, and all start the copies of one that is kBuffers - 1 further on. Each part
    // is there once: code that runs once takes longer to fetch than to run.
    TILEWISE_DEVICE void work() {
        const int block = int(block_index()),
                  part = launch.interleaved == 1 ? block : int(u32(block) / u32(launch.interleaved));
        const int count = launch.tiles_per_block + (part < launch.remainder ? 1 : 0);
        Place place = place_of(part * launch.tiles_per_block + (part < launch.remainder ? part : launch.remainder));
        place.slice += block - part * launch.interleaved;
        Place ahead = place;
        feed.prepare(plan, shared);
        griddep_wait();
        int loaded = -1, reading = 0, filling = 0;
        TILEWISE_ROLLED
        for (int step = 1 - kBuffers; step < count; ++step) {
            if (kBuffers > 1 && step >= 0) {  // this step's patch is there for all; all are done with the one before it
                feed.wait(plan, shared, step);
                if constexpr (Feed::kBoxes) feed.free_stage(plan);
                sync_block();
            }
            if (kBuffers == 1 && step > 0) sync_block();  // all are done with the patch before
            if (step + kBuffers - 1 < count) {
                copy_patch(ahead, filling);
                advance(ahead);
                filling = filling + 1 == kBuffers ? 0 : filling + 1;
            }
            // What else there is to do first is done while patches and weights are on their way; weights of classes need the tables.
            constexpr bool kTablesFirst = PatchFilter<Config>::kMayHaveClasses;
            const bool is_first = step == 1 - kBuffers, is_new = place.slice != loaded;
            if (kTablesFirst && is_first) prepare();
            if (is_new) {
                loaded = place.slice;
                load_weights(loaded);
            }
            if (!kTablesFirst && is_first) prepare();
            commit_copies();  // a group for every step, empty or not, so that counting groups is counting steps
            if (step < 0) continue;
            if (is_new || kBuffers == 1) {
                wait_copies<0>();
                sync_block();
            }
            compute(buffer(reading), slice_at(loaded), place.origin, step);
            advance(place);
            reading = reading + 1 == kBuffers ? 0 : reading + 1;
        }
        if constexpr (Feed::kBoxes) feed.finish();
    }

    // ---- One tile: every product and class; the warps along n share them ----

    TILEWISE_DEVICE void compute(SharedAddress patch_at, const Slice& slice, const PatchOrigin& origin,
                                 int step) const {
        const SharedAddress stage = shared + plan.out + (plan.out_stages > 1 ? step % 2 * plan.out_bytes : 0);
        TILEWISE_ROLLED
        for (int which = 0; which < (kBackward ? plan.classes : 1); ++which) {
            const PatchEntry chunks = weights().class_entry(which);
            typename Drain::Target target = {};
            if (!leaves_as_boxes) target = target_of(which, origin);
            TILEWISE_ROLLED
            for (int product = warp % Config::wave_n; product < plan.products; product += Config::wave_n) {
                const typename Drain::Columns columns = {slice.group + product * plan.product_groups, slice.column,
                                                         plan.out_channels - slice.column};
                const typename Drain::Bias bias = drain().read_bias(columns);
                Sums sums = {};
                multiply(sums, patch_at + product * plan.chunks * kChunkBytes, product, int(chunks.place),
                         int(chunks.offset));
                if constexpr (Feed::kBoxes) {
                    if (leaves_as_boxes) {
                        feed.put(args, plan, stage, sums, first_row, product, slice.group);
                        continue;
                    }
                }
                drain().run(sums, target, columns, drain_lane, bias);
            }
        }
        if constexpr (Feed::kBoxes) {
            if (leaves_as_boxes) {
                const KernelActivation& to = kBackward ? args.conv.x : args.conv.y;
                feed.store(stage, int(slice.group * to.group_stride), origin);
            }
        }
    }
    TILEWISE_DEVICE typename Drain::Target target_of(int which, const PatchOrigin& origin) const {
        int of_class[kMaxKernelDims] = {};
        if (weights().has_classes()) {
            TILEWISE_UNROLL
            for (int d = kMaxKernelDims - 1; d >= 0; --d) {
                const int classes = launch.axes[d].classes, next = int(u32(which) / u32(classes));
                of_class[d] = which - next * classes;
                which = next;
            }
        }
        u32 row = u32(origin.image);
        const auto range = [&](int d) {
            const PatchAxis& axis = launch.axes[d];
            const int classes = kBackward ? axis.classes : 1;
            row = row * u32(axis.outputs) + u32(origin.output[d] * classes + of_class[d]);
            return PatchRange(origin.output[d], launch.tile.extent[d],
                              patch_divide_up(axis.outputs - of_class[d], classes));
        };
        const PatchRange depth = range(0), height = range(1), column = range(2);
        const PatchRange images(origin.image, launch.tile.images, int(args.conv.images));
        return drain().target(row, patch_bounds(images, depth, height, column));
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
        hide(at.weights);
        at.offset = load_shared<4>(at.offset_entry).words[0];
    }

    TILEWISE_DEVICE void fetch_pixels(u32 (&to)[kStepsM][4], const Cursor& at) const {
        const SharedAddress from = at.patch + at.offset;
        TILEWISE_UNROLL
        for (int i = 0; i < kStepsM; ++i) load_matrices<false>(stored(from + pixel[i]), to[i]);
    }
    // Weights of two steps of n, or of the last one: pair j.
    TILEWISE_DEVICE void fetch_weights(u32 (&to)[kStepsN][2], int j, SharedAddress at) const {
        const SharedAddress from = at + j * (kBackward ? 2 * kChunkBytes : 2 * kStepN * plan.weight_pitch);
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
        for (int j = 0; j < kPairsN; ++j) fetch_weights(to.b, j, at.weights);
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
        if constexpr (kSharesRows) return multiply_rows(sums, patch_at, product);
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
                    fetch_weights(operands.b, j, at.weights);
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
    // The same of 3 x 3 taps. The columns of the filter and the chunks of each are the steps, and a step has all its rows: of one
    // more row of pixels than a column has taps, and so on, everything is fetched once. Row r of those is what sums i need
    // for tap r - i, counted from the other end where taps run against the pixels.
    TILEWISE_DEVICE void multiply_rows(Sums& sums, SharedAddress patch_at, int product) const {
        const int row_bytes = plan.patch.width() * plan.patch.pitch, chunks = kTaps * plan.chunks;
        const int chunk_bytes = kBackward ? kMatrix * plan.weight_pitch : kChunkBytes;
        // Offsets are those of the first row of taps, which backward data finds in the last row of pixels.
        const SharedAddress pixels = patch_at + pixel[0] - (kBackward ? (kTaps - 1) * row_bytes : 0);
        SharedAddress weights = shared + plan.weights + product * plan.product_bytes + weight_lane;
        SharedAddress offset_entry = shared + plan.offsets + lane_index() / kStepM * sizeof(u32);
        TILEWISE_ROLLED
        for (int left = chunks; left > 1; left -= 2) {
            multiply_column<false>(sums, pixels + load_shared<4>(offset_entry).words[0], weights, row_bytes,
                                   chunks * chunk_bytes);
            weights += 2 * chunk_bytes, offset_entry += 2 * sizeof(u32);
            hide(weights);
        }
        if (chunks % 2 != 0) {  // by itself: all lanes fetch it
            const SharedAddress entry = offset_entry - lane_index() / kStepM * sizeof(u32);
            multiply_column<true>(sums, pixels + load_shared<4>(entry).words[0], weights, row_bytes,
                                  chunks * chunk_bytes);
        }
    }
    // The taps of a column, for two chunks or for one.
    template <bool is_half>
    TILEWISE_DEVICE void multiply_column(Sums& sums, SharedAddress from, SharedAddress weights, int row_bytes,
                                         int tap_bytes) const {
        constexpr int kRows = kStepsM + kTaps - 1;
        u32 a[kRows][4];
        TILEWISE_UNROLL
        for (int r = 0; r < kRows; ++r) {
            load_matrices<false>(stored(from + r * row_bytes), a[r]);
            if (is_half) a[r][2] = a[r][3] = 0;
        }
        TILEWISE_UNROLL
        for (int tap = 0; tap < kTaps; ++tap) {
            u32 b[kStepsN][2];
            TILEWISE_UNROLL
            for (int j = 0; j < kPairsN; ++j) fetch_weights(b, j, weights + tap * tap_bytes);
            TILEWISE_UNROLL
            for (int j = 0; j < kStepsN; ++j) {
                if (is_half) b[j][1] = 0;
                TILEWISE_UNROLL
                for (int i = 0; i < kStepsM; ++i) {
                    multiply_add<T, T>(sums[i][j], a[kBackward ? i + kTaps - 1 - tap : i + tap], b[j][0], b[j][1]);
                }
            }
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

    template <class... Maps>
    static TILEWISE_DEVICE void run(const KernelArgs& args, const Maps&... maps) {
        griddep_launch();
        PatchConv(args, maps...).work();
    }
};

}  // namespace tilewise::cuda::patch_conv

#define TILEWISE_CUDA_PATCH_CONV(Config)                                                   \
    extern "C" __global__ void __launch_bounds__(Config::threads, Config::blocks_per_unit) \
        tilewise_kernel(const __grid_constant__ tilewise::KernelArgs args) {               \
        tilewise::cuda::patch_conv::PatchConv<Config>::run(args);                          \
    }
