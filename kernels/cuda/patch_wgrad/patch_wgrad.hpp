// SPDX-License-Identifier: MIT
// Backward weight of groups of few channels: dw[k][tap][c] = sum over pixels p of dy[p][k] * x[p * stride + tap * dilation -
// pad][c], on mma.sync with the pixels as the reduction. The product is computed transposed (swap_ab): a block has tile_m rows
// (tap, c) and tile_n columns (k) of one group, or of `merge` groups side by side, over the patches of its part. Of every
// patch of output pixels dy and the pixels of x that its taps read come to shared memory once (patch.hpp), in a ring of
// `stages`, and every tap reads them there at its own distance: both operands are fetched transposed, 16 pixels at a time.
// Waves share out rows, columns and pixels; the sums of waves that share out pixels meet in shared memory, in order. All sums
// go to the workspace, one set for every part, and reduce_many.hpp adds them up in a fixed order. Merged groups are the diagonal of a
// product: each wave of n has merge / wave_n of them, and of its product of all of these only pairs of one group are written.
// Floors: bytes of x and dy once (H200 4.27 TB/s), and 2 x pixels x rows x columns computed, merged and rounded up to 16 x 8,
// at what mma.sync reaches (about 600 TFLOP/s in bf16).
#pragma once
#include "../../common/patch_wgrad_args.hpp"
#include "../../common/wgrad_sums.hpp"
#include "../../gpu/few_channel_patch.hpp"
#include "../../gpu/reduce_many.hpp"
#include "../put_sums.hpp"
#include "../wgrad_drain.hpp"

namespace tilewise::cuda::patch_wgrad {

// Worked out by the host, for as many columns as a tile has.
TILEWISE_DEVICE const PatchWgradArgs& patch_wgrad_args_of(const KernelArgs& args) {
    return TILEWISE_FAMILY_ARGS(PatchWgradArgs, args);
}

// Sums of a wave: rows x columns in steps of 16 x 8. Rows are (tap, channel of the wave's groups), eight at a time within a tap.
template <class Config>
struct PatchWgradCore {
    using Element = typename Config::A;
    static constexpr int kStepM = 16, kStepN = 8, kMatrix = 8, kLanes = 32;
    static constexpr int kWaveM = Config::tile_m / Config::wave_m, kWaveN = Config::tile_n / Config::wave_n;
    static constexpr int kStepsM = kWaveM / kStepM, kStepsN = kWaveN / kStepN;
    static_assert(kWaveM % kStepM == 0 && kWaveN % kStepN == 0, "a wave's share is whole steps");
    static_assert(Element::bytes == 2 && kSame<typename Config::A, typename Config::B>, "16-bit operands of one type");
    static constexpr bool kFew = Config::vector_b == 1;             // at most four channels
    static constexpr int kGroups = Config::merge / Config::wave_n;  // of a wave, where groups are merged
    static_assert(Config::merge == 1 || kGroups * Config::wave_n == Config::merge,
                  "merged groups are shared out evenly");

    float sums[kStepsM][kStepsN][4] = {};
    int wave_m, wave_n, wave_k;
    u32 column_offset;       // of the lane's address in dy, from a step's first pixel on
    u32 distances[kStepsM];  // of the lane's eight rows of each step, from the pixel that a row of the tile reads first

    // `taps` is the table of distances, one for every eight rows of the tile, in the first of the merged groups' channels.
    TILEWISE_DEVICE PatchWgradCore(const KernelConv& conv, const PatchWgradArgs& shape, SharedAddress taps) {
        const int warp = warp_index(), lane = lane_index();
        wave_m = warp % Config::wave_m;
        const int rest = warp / Config::wave_m;
        wave_n = rest % Config::wave_n, wave_k = rest / Config::wave_n;
        const int column = Config::merge > 1 ? wave_n * kGroups * int(conv.k) : wave_n * kWaveN;
        // B's registers: pixels 0-7 and 8-15 of eight columns, then of the next eight.
        column_offset = u32(lane % kStepM * shape.y.pitch + (column + lane / kStepM * kStepN) * Element::bytes);
        const int first_channel = Config::merge > 1 ? wave_n * kGroups * int(conv.c) : 0;
        const SharedAddress own = taps + (wave_m * kWaveM / kMatrix + lane / kMatrix % 2) * 4;
        TILEWISE_UNROLL
        for (int i = 0; i < kStepsM; ++i) {
            distances[i] = load_shared<4>(own + i * 8).words[0] + u32(first_channel * Element::bytes);
        }
    }

    // Registers that two blocks or more leave to a thread; about so many hold addresses and the like.
    static constexpr int kRegisters = 65536 / (Config::threads * Config::blocks_per_unit), kOtherRegisters = 56;
    static constexpr int kMostRegisters = kRegisters < 255 ? kRegisters : 255;
    // The first operands of a step are fetched during the arithmetic of the one before, where registers allow it.
    static constexpr bool kFetchAhead =
        4 * kStepsM * kStepsN + 4 * kStepsN + kStepsM + 12 + kOtherRegisters <= kMostRegisters;

    // One patch: dy and x are staged there, and the table says where in x every pixel of the tile reads.
    TILEWISE_DEVICE void multiply(SharedAddress dy, SharedAddress x, SharedAddress table, int pitch, int steps) {
        // A's registers: pixels 0-7 of eight rows and of the next eight, then pixels 8-15 of both.
        const int pixel_of_lane = lane_index() / kStepM * kMatrix + lane_index() % kMatrix;
        const auto pixel_at = [&](int step) {
            return x + load_shared<4>(table + (step * kPatchWgradDepth + pixel_of_lane) * 4).words[0];
        };
        const auto columns_at = [&](int step) { return dy + step * kPatchWgradDepth * pitch + column_offset; };
        if (wave_k >= steps) return;
        SharedAddress pixel = pixel_at(wave_k);
        u32 a[2][4], b[kStepsN][2], first[4], columns[kStepsN][2];
        fetch_columns(columns_at(wave_k), columns);
        load_matrices<true>(pixel + distances[0], first);
        TILEWISE_ROLLED
        for (int step = wave_k; step < steps; step += Config::wave_k) {
            // After the last step there is none: the last one's operands are fetched once more.
            const int next = step + Config::wave_k < steps ? step + Config::wave_k : step;
            const SharedAddress next_pixel = pixel_at(next);
            TILEWISE_UNROLL
            for (int i = 0; i < 4; ++i) a[0][i] = first[i];
            TILEWISE_UNROLL
            for (int j = 0; j < kStepsN; ++j) b[j][0] = columns[j][0], b[j][1] = columns[j][1];
            TILEWISE_UNROLL
            for (int i = 0; i < kStepsM; ++i) {
                if (i + 1 < kStepsM) {
                    load_matrices<true>(pixel + distances[i + 1], a[(i + 1) % 2]);
                } else if (kFetchAhead) {
                    load_matrices<true>(next_pixel + distances[0], first);
                    fetch_columns(columns_at(next), columns);
                }
                TILEWISE_UNROLL
                for (int j = 0; j < kStepsN; ++j) {
                    multiply_add<Element, Element>(sums[i][j], a[i % 2], b[j][0], b[j][1]);
                }
            }
            if (!kFetchAhead) {
                fetch_columns(columns_at(next), columns);
                load_matrices<true>(next_pixel + distances[0], first);
            }
            pixel = next_pixel;
        }
    }
    static TILEWISE_DEVICE void fetch_columns(SharedAddress from, u32 (&b)[kStepsN][2]) {
        TILEWISE_UNROLL
        for (int j = 0; j + 1 < kStepsN; j += 2) {
            u32 both[4];
            load_matrices<true>(from + j * kStepN * Element::bytes, both);
            b[j][0] = both[0], b[j][1] = both[1], b[j + 1][0] = both[2], b[j + 1][1] = both[3];
        }
        if constexpr (kStepsN % 2 == 1) {
            load_matrices<true>(from + (kStepsN - 1) * kStepN * Element::bytes, b[kStepsN - 1]);
        }
    }

    static constexpr int kPitch = wgrad_sum_pitch(kWaveM), kSumBytes = kWaveN * kPitch;
    TILEWISE_DEVICE void put(SharedAddress shared) const { put_sums<kPitch>(shared + warp_index() * kSumBytes, sums); }
};

template <class Config>
struct PatchWgrad {
    using Core = PatchWgradCore<Config>;
    using Element = typename Config::A;
    static constexpr int kStages = Config::stages, kChunk = kChunkBytes / Element::bytes;
    static_assert(kStages >= 2 && Config::threads == 32 * Config::wave_m * Config::wave_n * Config::wave_k);
    static constexpr bool kByLines = patch_wgrad_by_lines(Config::merge, Config::tile_n);
    using Lines = PatchLines<Element, Config::threads>;
    using Patch = StagedPatch<Element, Config::threads>;
    using Drain = WgradDrain<Config, Core>;
    static constexpr int kWaveGroups = Drain::kWaveGroups;
    static constexpr int kWaves = Config::wave_m * Config::wave_n * Config::wave_k;
    static_assert(wgrad_sum_bytes(Core::kWaveM, Core::kWaveN, kWaves) <= Config::shared_bytes,
                  "the sums of all waves take the place of the stages");

    const KernelArgs& args;
    const KernelConv& conv = args.conv;
    const PatchWgradArgs& shape = patch_wgrad_args_of(args);
    const PatchTile tile = patch_tile(args);
    WgradPlace place;
    int tap_rows;  // of the product, for each tap or line of taps
    SharedAddress pixel_words = shared_start(), row_words, tap_words, stages, tables;

    TILEWISE_DEVICE explicit PatchWgrad(const KernelArgs& kernel_args) : args(kernel_args) {
        const int rows = patch_wgrad_rows(conv, kWaveGroups, Core::kFew), k = int(conv.k);
        const int tiles_m = (rows + Config::tile_m - 1) / Config::tile_m;
        const int tiles_n = Config::merge > 1 ? 1 : (k + Config::tile_n - 1) / Config::tile_n;
        place = WgradPlace::of_block<Config>(args, shape.together, tiles_m, tiles_n);
        tap_rows = patch_wgrad_tap_rows(conv, kWaveGroups, Core::kFew);
        row_words = pixel_words + shape.steps() * kPatchWgradDepth * 4;
        tap_words = row_words + Config::tile_m * 4;
        stages = pixel_words + shape.word_bytes(Config::tile_m);
        tables = stages + kStages * shape.stage_bytes();
    }
    TILEWISE_DEVICE FewChannelPatch<Element, Config::threads> few_patch() const { return {shape.x, tables}; }
    // dy's, of as many columns as are left.
    TILEWISE_DEVICE PatchShape y_shape() const {
        const int left = int(conv.k) - place.col, cols = left < Config::tile_n ? left : Config::tile_n;
        PatchShape y = shape.y;
        y.chunks = (Config::merge > 1 ? Config::merge * int(conv.k) : cols) / kChunk;
        return y;
    }

    TILEWISE_DEVICE Patch y_patch() const { return {y_shape(), tables + shape.x.pixels() * kPatchEntryBytes}; }

    // The code that runs once is kept short: fetching it takes remainder than running it.
    TILEWISE_DEVICE void prepare() const {
        if constexpr (Core::kFew) {
            few_patch().make_table(shape.x_axes, conv.x);
        } else if constexpr (!kByLines) {
            Patch{shape.x, tables}.make_table(shape.x_axes, conv.x);
        }
        if constexpr (!kByLines) y_patch().make_table(shape.y_axes, conv.y);
        TILEWISE_ROLLED
        for (int row = thread_index(); row < shape.steps() * kPatchWgradDepth; row += Config::threads) {
            store_shared<4>(pixel_words + row * 4, Packet<4>{{patch_offset(row)}});
        }
        TILEWISE_ROLLED
        for (int row = thread_index(); row < Config::tile_m; row += Config::threads) describe_row(row);
    }
    // The first pixel that an output pixel of the tile reads, in bytes from the patch's start. What fills up lines reads what the line's
    // last pixel does, and those past the last what the first does: products with zero.
    TILEWISE_DEVICE u32 patch_offset(int row) const {
        int at[kMaxKernelDims];
        const PatchTile lines = {tile.images, {tile.extent[0], tile.extent[1], shape.y.phase}};
        const int image = PatchRows<kPatchWgradDepth, Config::threads>::decode(lines, row < shape.rows() ? row : 0, at);
        const int last = tile.extent[2] - 1, column = at[2] < last ? at[2] : last;
        if (at[2] > last || row >= shape.rows()) clear_row(row);
        const int step = Core::kFew ? shape.x_axes[2].in_step : 1;  // few channels: columns lie as they are
        return u32(shape.x.pixel_of(image, at[0], at[1], column * step) * shape.x.pitch);
    }
    // Zeros in the rows of dy that no copy writes.
    TILEWISE_DEVICE void clear_row(int row) const {
        SharedAddress at = stages + row * shape.y.pitch;
        TILEWISE_ROLLED
        for (int stage = 0; stage < kStages; ++stage, at += shape.stage_bytes()) {
            TILEWISE_ROLLED
            for (int byte = 0; byte < shape.y.pitch; byte += kChunkBytes) {
                store_shared<kChunkBytes>(at + byte, zero_packet<kChunkBytes>());
            }
        }
    }
    // Where the result of a row of the tile goes, and the distance of its tap. Rows past the last read what the first does.
    TILEWISE_DEVICE void describe_row(int row_of_tile) const {
        const int row = place.row + row_of_tile, tap = row / tap_rows, rest = row - tap * tap_rows;
        const int c = int(conv.c), filter_h = int(conv.filter[1]), filter_w = int(conv.filter[2]);
        const int line = Core::kFew ? tap : tap / filter_w, w = Core::kFew ? 0 : tap - line * filter_w;
        const int d = line / filter_h, h = line - d * filter_h;
        const bool is_there = d < int(conv.filter[0]);
        const int pixels =
            shape.x.tap_distance(d * int(conv.dilation[0]), h * int(conv.dilation[1]), w * int(conv.dilation[2]));
        const u32 distance = is_there ? u32(pixels * shape.x.pitch + rest * Element::bytes) : 0;
        u32 place_of_row = Drain::kNowhere;
        if constexpr (Core::kFew) {
            const int column = rest / kFewChannels, channel = rest % kFewChannels;
            if (is_there && column < filter_w && channel < c)
                place_of_row = u32((line * filter_w + column) * c + channel);
        } else {
            const int group = Config::merge > 1 ? rest / c : 0;
            if (is_there) place_of_row = u32(group) << Drain::kPlaceBits | u32(tap * c + rest - group * c);
        }
        store_shared<4>(row_words + row_of_tile * 4, Packet<4>{{place_of_row}});
        if (row_of_tile % 8 == 0) store_shared<4>(tap_words + row_of_tile / 8 * 4, Packet<4>{{distance}});
    }

    // The tile of pixels after this one, images slowest.
    TILEWISE_DEVICE void advance(PatchOrigin& origin) const {
        TILEWISE_UNROLL
        for (int d = kMaxKernelDims - 1; d >= 0; --d) {
            origin.output[d] += tile.extent[d];
            if (origin.output[d] < shape.tiles[d] * tile.extent[d]) return;
            origin.output[d] = 0;
        }
        origin.image += tile.images;
    }
    TILEWISE_DEVICE PatchOrigin origin_of(int index) const {
        PatchOrigin o;
        TILEWISE_UNROLL
        for (int d = kMaxKernelDims - 1; d >= 0; --d) {
            const int next = index / shape.tiles[d];
            o.output[d] = (index - next * shape.tiles[d]) * tile.extent[d];
            index = next;
        }
        o.image = index * tile.images;
        return o;
    }

    TILEWISE_DEVICE void copy_y(SharedAddress to, const char* data, const PatchOrigin& origin) const {
        if constexpr (kByLines) {
            const PatchShape own = y_shape();
            Lines(own).copy(to, data, shape.y_axes, int(conv.images), conv.y, origin);
        } else {
            y_patch().copy(to, data, shape.y_axes, int(conv.images), conv.y, origin);
        }
    }
    TILEWISE_DEVICE void copy_x(SharedAddress to, const char* data, const PatchOrigin& origin) const {
        if constexpr (Core::kFew) {
            few_patch().copy(to, data, shape.x_axes, int(conv.images), conv.x, origin);
        } else if constexpr (kByLines) {
            Lines(shape.x).copy(to, data, shape.x_axes, int(conv.images), conv.x, origin);
        } else {
            Patch{shape.x, tables}.copy(to, data, shape.x_axes, int(conv.images), conv.x, origin);
        }
    }

    TILEWISE_DEVICE void work() {
        griddep_launch();
        prepare();
        sync_block();  // the tables are there
        griddep_wait();
        Core core(conv, shape, tap_words);
        const int each = shape.patches() / args.split_k, remainder = shape.patches() - each * args.split_k;
        const int begin = place.part * each + (place.part < remainder ? place.part : remainder);
        const int count = each + (place.part < remainder ? 1 : 0);
        const char* x_data = address(args.b.data, place.group * conv.x.group_stride);
        const char* y_data = address(args.a.data, place.group * conv.y.group_stride + place.col);
        PatchOrigin ahead = origin_of(begin);
        int reading = 0, filling = 0;
        // The copies of a patch begin stages - 1 turns before its turn; the first turns have nothing to multiply.
        TILEWISE_ROLLED
        for (int turn = 1 - kStages; turn < count; ++turn) {
            if (turn >= 0) {
                wait_copies<kStages - 2>();
                sync_block();  // this patch is there for all, and all are done with the stage filled next
            }
            if (turn + kStages - 1 < count) {
                const SharedAddress to = stages + filling * shape.stage_bytes();
                copy_y(to, y_data, ahead);
                copy_x(to + shape.y_bytes(), x_data, ahead);
                advance(ahead);
                filling = filling + 1 == kStages ? 0 : filling + 1;
            }
            commit_copies();
            if (turn < 0) continue;
            const SharedAddress stage = stages + reading * shape.stage_bytes();
            core.multiply(stage, stage + shape.y_bytes(), pixel_words, shape.y.pitch, shape.steps());
            reading = reading + 1 == kStages ? 0 : reading + 1;
        }
        wait_copies<0>();
        sync_block();
        core.put(stages);
        Drain{args, place, shape.together, stages, row_words}.run();
    }

private:
    static TILEWISE_DEVICE const char* address(const void* data, Index element) {
        return static_cast<const char*>(data) + element * Element::bytes;
    }
};

}  // namespace tilewise::cuda::patch_wgrad

#define TILEWISE_CUDA_PATCH_WGRAD(Config)                                                  \
    extern "C" __global__ void __launch_bounds__(Config::threads, Config::blocks_per_unit) \
        tilewise_kernel(const __grid_constant__ tilewise::KernelArgs args) {               \
        tilewise::cuda::patch_wgrad::PatchWgrad<Config>(args).work();                      \
    }                                                                                      \
    TILEWISE_GPU_REDUCE_MANY(Config, tilewise::cuda::patch_wgrad::patch_wgrad_args_of(args).together)
