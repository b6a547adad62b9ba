// SPDX-License-Identifier: MIT
// Backward weight of groups of few channels: dw[k][tap][c] = sum over pixels p of dy[p][k] * x[p * stride + tap * dilation -
// pad][c], on mma.sync with the pixels as the reduction. The product is computed transposed (swap_ab): a block has tile_m rows
// (tap, c) and tile_n columns (k) of one group, or of `merge` groups side by side, over the patches of its part. Of every
// patch of output pixels dy and the pixels of x that its taps read come to shared memory once (halo_patch.hpp), in a ring of
// `stages`, and every tap reads them there at its own distance: both operands are fetched transposed, 16 pixels at a time.
// Waves share out rows, columns and pixels; the sums of waves that share out pixels meet in shared memory, in order. All sums
// go to the workspace, one set for every part, and reduce.hpp adds them up in a fixed order. Merged groups are the diagonal of a
// product: each wave of n has merge / wave_n of them, and of its product of all of these only pairs of one group are written.
// Floors: bytes of x and dy once (H200 4.27 TB/s), and 2 x pixels x rows x columns computed, merged and rounded up to 16 x 8,
// at what mma.sync reaches (about 600 TFLOP/s in bf16).
#pragma once
#include "../common/halo_weight_shape.hpp"
#include "halo_few_patch.hpp"
#include "reduce.hpp"

namespace tilewise::cuda {

// The part of the product that one block computes.
struct HaloWeightPlace {
    int part, group, row, col;  // the first group, row and column

    // Blocks that run at the same time should read the same pixels: parts are outermost.
    template <class Config>
    static TILEWISE_DEVICE HaloWeightPlace of_block(u32 id, int groups, int tiles_m, int tiles_n) {
        HaloWeightPlace p;
        const u32 rest = id / u32(tiles_m), up = rest / u32(tiles_n);
        p.row = int(id - rest * u32(tiles_m)) * Config::tile_m;
        p.col = int(rest - up * u32(tiles_n)) * Config::tile_n;
        const u32 blocks_of_groups = u32(groups) / Config::merge;
        p.part = int(up / blocks_of_groups);
        p.group = int(up - u32(p.part) * blocks_of_groups) * Config::merge;
        return p;
    }
};

// Sums of a wave: rows x columns in steps of 16 x 8. Rows are (tap, channel of the wave's groups), eight at a time within a tap.
template <class Config>
struct HaloWeightCore {
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
    int channels;            // in a tap's rows
    int first_row;           // of the wave
    u32 column_offset;       // of the lane's address in dy, from a step's first pixel on
    u32 distances[kStepsM];  // of the lane's eight rows of each step, from the pixel that a row of the tile reads first

    TILEWISE_DEVICE HaloWeightCore(const KernelConv& conv, const HaloWeightShape& shape, const HaloWeightPlace& place) {
        const int warp = warp_index(), lane = lane_index();
        wave_m = warp % Config::wave_m;
        const int rest = warp / Config::wave_m;
        wave_n = rest % Config::wave_n, wave_k = rest / Config::wave_n;
        const int k = int(conv.k);
        channels = halo_weight_tap_rows(conv, Config::merge > 1 ? kGroups : 1, kFew);
        first_row = place.row + wave_m * kWaveM;
        const int column = Config::merge > 1 ? wave_n * kGroups * k : wave_n * kWaveN;
        // B's registers: pixels 0-7 and 8-15 of eight columns, then of the next eight.
        column_offset = u32(lane % kStepM * shape.y.pitch + (column + lane / kStepM * kStepN) * Element::bytes);
        const int first_channel = Config::merge > 1 ? wave_n * channels : 0;
        TILEWISE_UNROLL
        for (int i = 0; i < kStepsM; ++i) {
            const int row = first_row + i * kStepM + lane / kMatrix % 2 * kMatrix;
            distances[i] = distance(conv, shape.x, row, first_channel);
        }
    }
    // Rows past the last read what the first does, and are not written.
    TILEWISE_DEVICE u32 distance(const KernelConv& conv, const HaloPatchShape& x, int row, int first_channel) const {
        const int tap = row / channels, channel = first_channel + row - tap * channels;
        const int filter_h = int(conv.filter[1]), filter_w = kFew ? 1 : int(conv.filter[2]);
        const int up = tap / filter_w, w = tap - up * filter_w, d = up / filter_h, h = up - d * filter_h;
        if (d >= int(conv.filter[0])) return 0;
        const int pixels =
            x.tap_distance(d * int(conv.dilation[0]), h * int(conv.dilation[1]), w * int(conv.dilation[2]));
        return u32(pixels * x.pitch + channel * Element::bytes);
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
            return x + load_shared<4>(table + (step * kHaloWeightDepth + pixel_of_lane) * 4).words[0];
        };
        const auto columns_at = [&](int step) { return dy + step * kHaloWeightDepth * pitch + column_offset; };
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

    static constexpr int kSums = kStepsM * kStepsN * 4;
    // Adds up the sums of waves that share out pixels, in their order, through shared memory that nobody else uses any more.
    TILEWISE_DEVICE void join(SharedAddress shared) {
        if constexpr (Config::wave_k > 1) {
            constexpr int kWaveBytes = kSums * kLanes * int(sizeof(float)), kOthers = Config::wave_m * Config::wave_n;
            const int place = wave_n * Config::wave_m + wave_m;
            const SharedAddress own = shared + place * kWaveBytes + lane_index() * int(sizeof(float));
            TILEWISE_ROLLED
            for (int k = 1; k < Config::wave_k; ++k) {
                if (wave_k == k) visit([&](int at, float& sum) { store_shared_float(own + at * kLanes * 4, sum); });
                sync_block();
                if (wave_k == 0) visit([&](int at, float& sum) { sum += load_shared_float(own + at * kLanes * 4); });
                if (k + 1 < Config::wave_k) sync_block();
            }
            static_assert(kWaveBytes * kOthers <= Config::shared_bytes, "room for the sums of all waves of a share");
        }
    }
    template <class F>
    TILEWISE_DEVICE void visit(F&& f) {
        TILEWISE_UNROLL
        for (int i = 0; i < kStepsM; ++i) {
            TILEWISE_UNROLL
            for (int j = 0; j < kStepsN; ++j) {
                TILEWISE_UNROLL
                for (int e = 0; e < 4; ++e) f((i * kStepsN + j) * 4 + e, sums[i][j][e]);
            }
        }
    }

    // To the workspace, [part][group][k][tap][c]: lane l has of every step rows l / 4 and l / 4 + 8, and two columns.
    TILEWISE_DEVICE void write(const KernelArgs& args, const HaloWeightPlace& place) const {
        if (wave_k > 0) return;
        const int c = int(args.conv.c), k = int(args.conv.k), lane = lane_index();
        float* part = static_cast<float*>(args.workspace) + Index(place.part) * args.batch * args.m * args.n;
        const int first_group = place.group + (Config::merge > 1 ? wave_n * kGroups : 0);
        const int first_col = Config::merge > 1 ? 0 : place.col + wave_n * kWaveN;
        const int cols = Config::merge > 1 ? kGroups * k : k;
        const int rows = halo_weight_rows(args.conv, Config::merge > 1 ? kGroups : 1, kFew);
        TILEWISE_UNROLL
        for (int i = 0; i < 2 * kStepsM; ++i) {
            const int row = first_row + i * kMatrix + lane / 4;
            const int tap = row / channels, rest = row - tap * channels;
            const int row_group = Config::merge > 1 ? rest / c : 0;
            const int pixel = kFew ? rest / kHaloFewChannels : 0;  // in a line of taps
            const int channel = kFew ? rest % kHaloFewChannels : rest - row_group * c;
            const bool is_there = row < rows && (!kFew || (channel < c && pixel < int(args.conv.filter[2])));
            const int line_taps = kFew ? int(args.conv.filter[2]) : 1;
            float* to = part + Index(first_group) * k * args.n + (tap * line_taps + pixel) * c + channel;
            TILEWISE_UNROLL
            for (int j = 0; j < 2 * kStepsN; ++j) {
                const int col = first_col + j / 2 * kStepN + lane % 4 * 2 + j % 2;
                const bool is_own = Config::merge == 1 || col / k == row_group;
                if (is_there && col < cols && is_own) to[col * args.n] = sums[i / 2][j / 2][i % 2 * 2 + j % 2];
            }
        }
    }
};

template <class T, int threads, bool few>
struct HaloWeightPatch {
    using type = HaloPatch<T, threads>;
};
template <class T, int threads>
struct HaloWeightPatch<T, threads, true> {
    using type = HaloFewPatch<T, threads>;
};

template <class Config>
struct HaloWeight {
    using Core = HaloWeightCore<Config>;
    using Element = typename Config::A;
    static constexpr int kStages = Config::stages, kChunk = kChunkBytes / Element::bytes;
    static_assert(kStages >= 2 && Config::threads == 32 * Config::wave_m * Config::wave_n * Config::wave_k);
    using Patch = HaloPatch<Element, Config::threads>;
    using XPatch = typename HaloWeightPatch<Element, Config::threads, Core::kFew>::type;

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        griddep_launch();
        griddep_wait();
        const KernelConv& conv = args.conv;
        const int k = int(conv.k);
        const int rows = halo_weight_rows(conv, Config::merge > 1 ? Core::kGroups : 1, Core::kFew);
        const int tiles_m = (rows + Config::tile_m - 1) / Config::tile_m;
        const int tiles_n = Config::merge > 1 ? 1 : (k + Config::tile_n - 1) / Config::tile_n;
        const auto place = HaloWeightPlace::of_block<Config>(block_index(), int(conv.groups), tiles_m, tiles_n);
        const int left = k - place.col, cols = left < Config::tile_n ? left : Config::tile_n;
        const int y_channels = Config::merge > 1 ? Config::merge * k : cols;
        const HaloTile tile = halo_tile(args);
        // Worked out by the host, for as many columns as a tile has.
        const HaloWeightShape& shape = reinterpret_cast<const HaloWeightShape&>(args.geometry);
        static_assert(sizeof(HaloWeightShape) <= sizeof args.geometry, "the shape fits the arguments");
        const SharedAddress shared = shared_start(), tables = shared + kStages * shape.stage_bytes();
        const XPatch x{shape.x, tables};
        Patch y{shape.y, tables + shape.x.pixels() * kHaloEntryBytes};
        y.shape.chunks = y_channels / kChunk;
        const SharedAddress row_table = y.table + shape.rows() * kHaloEntryBytes;
        prepare(shape, tile, conv, x, y, row_table, shared);

        const char* x_data = address<Element>(args.b.data, place.group * conv.x.group_stride);
        const char* y_data = address<Element>(args.a.data, place.group * conv.y.group_stride + place.col);
        const HaloTiles tiles(shape.x_axes, tile, int(conv.images));
        const Index total = tiles.total();
        const int begin = int(total * place.part / args.split_k), end = int(total * (place.part + 1) / args.split_k);
        const auto copy = [&](int index, int stage) {
            const HaloOrigin origin = tiles.origin(index);
            const SharedAddress to = shared + stage * shape.stage_bytes();
            y.copy(to, y_data, shape.y_axes, int(conv.images), conv.y, origin);
            x.copy(to + shape.y_bytes(), x_data, shape.x_axes, int(conv.images), conv.x, origin);
        };

        Core core(conv, shape, place);
        sync_block();  // the tables are there
        TILEWISE_ROLLED
        for (int s = 0; s < kStages - 1; ++s) {
            if (begin + s < end) copy(begin + s, s);
            commit_copies();
        }
        int reading = 0, filling = kStages - 1;
        TILEWISE_ROLLED
        for (int index = begin; index < end; ++index) {
            wait_copies<kStages - 2>();
            sync_block();  // this patch is there for all, and all are done with the stage filled next
            if (index + kStages - 1 < end) copy(index + kStages - 1, filling);
            commit_copies();
            const SharedAddress stage = shared + reading * shape.stage_bytes();
            core.multiply(stage, stage + shape.y_bytes(), row_table, shape.y.pitch, shape.steps());
            reading = reading + 1 == kStages ? 0 : reading + 1;
            filling = filling + 1 == kStages ? 0 : filling + 1;
        }
        wait_copies<0>();
        sync_block();
        core.join(shared);
        core.write(args, place);
    }

private:
    // The first pixel that an output pixel of the tile reads, in bytes from the patch's start; those past the last read what the
    // first does.
    static TILEWISE_DEVICE u32 patch_offset(const HaloWeightShape& shape, const HaloTile& tile, int row) {
        int at[kMaxKernelDims];
        const int image = HaloRows<kHaloWeightDepth, Config::threads>::decode(tile, row < tile.rows() ? row : 0, at);
        const int column = at[2] * (Core::kFew ? shape.x_axes[2].in_step : 1);  // few channels: columns lie as they are
        return u32(shape.x.pixel_of(image, at[0], at[1], column) * shape.x.pitch);
    }
    template <class T>
    static TILEWISE_DEVICE const char* address(const void* data, Index element) {
        return static_cast<const char*>(data) + element * T::bytes;
    }
    // The tables, and zeros in the rows past a tile's last, which no copy writes.
    static TILEWISE_DEVICE void prepare(const HaloWeightShape& shape, const HaloTile& tile, const KernelConv& conv,
                                        const XPatch& x, const Patch& y, SharedAddress row_table,
                                        SharedAddress shared) {
        x.make_table(shape.x_axes, conv.x);
        y.make_table(shape.y_axes, conv.y);
        const int all = shape.steps() * kHaloWeightDepth;
        TILEWISE_ROLLED
        for (int row = thread_index(); row < all; row += Config::threads) {
            store_shared<4>(row_table + row * 4, Packet<4>{{patch_offset(shape, tile, row)}});
        }
        const int first = shape.rows() * shape.y.pitch, end = shape.y_bytes();
        TILEWISE_ROLLED
        for (int s = 0; s < kStages; ++s) {
            TILEWISE_ROLLED
            for (int at = first + thread_index() * kChunkBytes; at < end; at += Config::threads * kChunkBytes) {
                store_shared<kChunkBytes>(shared + s * shape.stage_bytes() + at, zero_packet<kChunkBytes>());
            }
        }
    }
};

}  // namespace tilewise::cuda

#define TILEWISE_CUDA_HALO_WEIGHT(Config)                                                  \
    extern "C" __global__ void __launch_bounds__(Config::threads, Config::blocks_per_unit) \
        tilewise_kernel(const __grid_constant__ tilewise::KernelArgs args) {               \
        tilewise::cuda::HaloWeight<Config>::run(args);                                     \
    }                                                                                      \
    TILEWISE_CUDA_REDUCE(Config)
