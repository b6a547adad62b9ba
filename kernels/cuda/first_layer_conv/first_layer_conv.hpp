// SPDX-License-Identifier: MIT
// Forward of first layers: at most four channels per group, on mma.sync. A block keeps the weights of its output channels in shared
// memory, four channels to a tap and four taps of a line to a step of the reduction (common/first_layer_conv_args.hpp), and walks
// over tiles of output pixels: the patch of a tile comes to shared memory once (few_channel_patch.hpp), the next one's while this
// one's is multiplied by other blocks of the unit, and ldmatrix takes an address for every pixel. Taps and channels that fill up a
// step have zero weights. Results leave as those of the other patch kernels do (patch_drain.hpp). Floors on an H200, bf16, 7x7
// stride 2, 3 to 64 channels, for each output pixel: 24 bytes read and 128 written, 36 ps at 4.27 TB/s; 2 x 224 x 64 operations
// where 147 of 224 count, 48 ps at what mma.sync reaches (about 600 TFLOP/s).
#pragma once
#include "../../common/first_layer_conv_args.hpp"
#include "../../gpu/few_channel_patch.hpp"
#include "../patch_drain.hpp"

namespace tilewise::cuda::first_layer_conv {

template <class Config>
struct FirstLayerConv {
    using T = typename Config::A;
    using Drain = PatchDrain<Config>;
    static constexpr int kStepM = 16, kStepN = 8, kMatrix = 8, kStepBytes = 32, kBuffers = 2;
    static constexpr int kWaveM = Config::tile_m / Config::wave_m, kColumns = Config::tile_n;
    static constexpr int kStepsM = kWaveM / kStepM, kStepsN = kColumns / kStepN;
    static_assert(Config::wave_n == 1 && kStepsN % 2 == 0 && T::bytes == 2 && kSame<typename Config::B, T>);
    static_assert(Config::threads == 32 * Config::wave_m, "a thread for every lane of every wave");
    using Sums = float[kStepsM][kStepsN][4];

    const KernelArgs& args;
    const FirstLayerConvArgs& launch;
    SharedAddress shared = shared_start();
    int first_row = warp_index() * kWaveM;
    int slice, group, column;  // of the block
    u32 pixel[kStepsM];        // where the patch begins for this lane's row of every step
    u32 weight_lane;           // this lane's line within a step's weights

    using Patch = FewChannelPatch<T, Config::threads>;
    using Rows = PatchRows<Config::tile_m, Config::threads>;
    TILEWISE_DEVICE Patch patch() const { return {launch.patch, shared + launch.patch_table}; }
    TILEWISE_DEVICE SharedAddress buffer(int index) const {
        return shared + launch.patches + index * launch.patch_bytes;
    }

    TILEWISE_DEVICE explicit FirstLayerConv(const KernelArgs& kernel_args)
        : args(kernel_args), launch(TILEWISE_FAMILY_ARGS(FirstLayerConvArgs, kernel_args)) {
        slice = int(block_index()) / launch.blocks_per_slice;
        group = slice / launch.column_tiles;
        column = (slice - group * launch.column_tiles) * kColumns;
    }

    // A row for every output channel, eight bytes for every tap and for what fills up a line.
    TILEWISE_DEVICE void load_weights() const {
        const int c = int(args.conv.c), k = int(args.conv.k), filter_w = int(args.conv.filter[2]);
        const int line_taps = launch.line_steps * kFirstLayerStepTaps, row_taps = launch.lines * line_taps;
        const u16* from = static_cast<const u16*>(args.b.data) + Index(group) * k * launch.lines * filter_w * c;
        TILEWISE_UNROLL_4
        for (int at = thread_index(); at < kColumns * row_taps; at += Config::threads) {
            const int row = at / row_taps, tap = at - row * row_taps, line = tap / line_taps,
                      w = tap - line * line_taps;
            u32 held[kFewChannels];
            TILEWISE_UNROLL
            for (int i = 0; i < kFewChannels; ++i) {
                const bool is_there = column + row < k && w < filter_w && i < c;
                const Index place = (Index(column + row) * launch.lines * filter_w + line * filter_w + w) * c + i;
                held[i] = is_there ? from[place] : 0;
            }
            store_shared<8>(shared + launch.weights + row * launch.weight_pitch + tap * kFewChannelBytes,
                            Packet<8>{{held[0] | held[1] << 16, held[2] | held[3] << 16}});
        }
    }

    TILEWISE_DEVICE void prepare() {
        patch().make_table(launch.axes, args.conv.x);
        Rows{shared + launch.row_table}.make_table(launch.axes, launch.tile);
        load_weights();
        const int lane = lane_index();
        TILEWISE_UNROLL
        for (int i = 0; i < kStepsM; ++i) {
            const int row = first_row + i * kStepM + lane % kStepM;
            int at[kMaxKernelDims];
            const int image = Rows::decode(launch.tile, row < launch.tile.rows() ? row : 0, at);
            const int place = launch.patch.pixel_of(image, at[0], at[1], at[2] * launch.axes[2].in_step);
            pixel[i] = u32(place * kFewChannelBytes + lane / kStepM * kChunkBytes);
        }
        weight_lane =
            u32((lane / kStepM * kMatrix + lane % kMatrix) * launch.weight_pitch + lane / kMatrix % 2 * kChunkBytes);
    }

    TILEWISE_DEVICE PatchOrigin origin_of(int tile) const {
        PatchOrigin o;
        TILEWISE_UNROLL
        for (int d = kMaxKernelDims - 1; d >= 0; --d) {
            const int next = tile / launch.tiles[d];
            o.output[d] = (tile - next * launch.tiles[d]) * launch.tile.extent[d];
            tile = next;
        }
        o.image = tile * launch.tile.images;
        return o;
    }
    TILEWISE_DEVICE void copy(int tile, int index) const {
        const u16* from = static_cast<const u16*>(args.a.data) + group * args.conv.x.group_stride;
        patch().copy(buffer(index), from, launch.axes, int(args.conv.images), args.conv.x, origin_of(tile));
    }

    struct Operands {
        u32 a[kStepsM][4];
        u32 b[kStepsN][2];
    };
    TILEWISE_DEVICE void fetch(Operands& to, SharedAddress patch_at, SharedAddress weights_at) const {
        TILEWISE_UNROLL
        for (int i = 0; i < kStepsM; ++i) load_matrices<false>(patch_at + pixel[i], to.a[i]);
        TILEWISE_UNROLL
        for (int j = 0; j < kStepsN; j += 2) {
            u32 two[4];
            load_matrices<false>(weights_at + j * kStepN * launch.weight_pitch, two);
            to.b[j][0] = two[0], to.b[j][1] = two[1], to.b[j + 1][0] = two[2], to.b[j + 1][1] = two[3];
        }
    }
    // Line by line of the filter, depths outermost.
    TILEWISE_DEVICE void multiply(Sums& sums, SharedAddress patch_at) const {
        const int filter_h = int(args.conv.filter[1]), line_bytes = launch.patch.width() * kFewChannelBytes;
        const int height_step = int(args.conv.dilation[1]) * line_bytes;
        const int depth_step = int(args.conv.dilation[0]) * launch.patch.height * line_bytes;
        SharedAddress weights_at = shared + launch.weights + weight_lane;
        TILEWISE_ROLLED
        for (int line = 0; line < launch.lines; ++line) {
            const int d = line / filter_h;
            SharedAddress from = patch_at + d * depth_step + (line - d * filter_h) * height_step;
            TILEWISE_ROLLED
            for (int step = 0; step < launch.line_steps; ++step, from += kStepBytes, weights_at += kStepBytes) {
                Operands operands;
                fetch(operands, from, weights_at);
                TILEWISE_UNROLL
                for (int j = 0; j < kStepsN; ++j) {
                    TILEWISE_UNROLL
                    for (int i = 0; i < kStepsM; ++i) {
                        multiply_add<T, T>(sums[i][j], operands.a[i], operands.b[j][0], operands.b[j][1]);
                    }
                }
            }
        }
    }

    TILEWISE_DEVICE void compute(SharedAddress patch_at, const PatchOrigin& origin) const {
        Sums sums = {};
        multiply(sums, patch_at);
        u32 row = u32(origin.image);
        TILEWISE_UNROLL
        for (int d = 0; d < kMaxKernelDims; ++d) row = row * u32(launch.axes[d].outputs) + u32(origin.output[d]);
        const auto range = [&](int d) {
            return PatchRange(origin.output[d], launch.tile.extent[d], launch.axes[d].outputs);
        };
        const PatchBounds inside =
            patch_bounds({origin.image, launch.tile.images, int(args.conv.images)}, range(0), range(1), range(2));
        const Drain drain{args, shared + launch.drain + warp_index() * launch.drain_bytes,
                          shared + launch.row_table + first_row * kPatchEntryBytes};
        typename Drain::Lane lane;
        drain.find_rows(lane);
        const int k = int(args.conv.k);
        const typename Drain::Columns columns = {group, column, k - column};
        drain.run(sums, drain.target(row, inside), columns, lane, drain.read_bias(columns));
    }

    TILEWISE_DEVICE void work() {
        griddep_launch();
        griddep_wait();
        prepare();
        sync_block();  // the tables are there
        const int total = launch.tile_count();
        int tile = int(block_index()) - slice * launch.blocks_per_slice, reading = 0;
        if (tile < total) copy(tile, 0);
        TILEWISE_ROLLED
        for (; tile < total; tile += launch.blocks_per_slice, reading ^= 1) {
            sync_block();  // this tile's patch is there for all, and all are done with the other buffer
            const int next = tile + launch.blocks_per_slice;
            if (next < total) copy(next, reading ^ 1);
            compute(buffer(reading), origin_of(tile));
        }
    }
};

}  // namespace tilewise::cuda::first_layer_conv

#define TILEWISE_CUDA_FIRST_LAYER_CONV(Config)                                             \
    extern "C" __global__ void __launch_bounds__(Config::threads, Config::blocks_per_unit) \
        tilewise_kernel(const __grid_constant__ tilewise::KernelArgs args) {               \
        tilewise::cuda::first_layer_conv::FirstLayerConv<Config>(args).work();             \
    }
