// SPDX-License-Identifier: MIT
// Depthwise convolution by diagonal matrices: forward of stride 1 and 2 and backward data of stride 1, 16-bit types, channels
// last, two and three dimensions. For one tap, 16 outputs of 8 channels are 16 pixels of 8 channels times the diagonal matrix
// of the tap's weights; one mma.sync does that for two neighbouring taps. Nothing is turned around: ldmatrix finds the pixels of
// a tap at a fixed distance from those of the first, and results lie as they are written. Of its products one in eight is not
// with zero, and still 3x3 taps take a fourth of the instructions of plain arithmetic. A block walks down the rows of its frames
// (block_diagonal_shape.hpp) line by line. A lane has two neighbouring channels of a pixel, which it finishes in registers
// (channel_runs.hpp).
//
// Floors on an H200, for each output element: bytes of one input and one output at 4.27e12 /s (0.94 ps); 6 products for 128
// outputs at 132 x 0.6 / clock (3x3: 0.3 ps); ldmatrix and the way out, 15 bytes at 132 x 128 / clock (0.5 ps): memory.
#pragma once
#include "../channel_runs.hpp"
#include "../matrix_places.hpp"
#include "block_diagonal_shape.hpp"

namespace tilewise::cuda::depthwise_block_diagonal {

template <class Config>
struct BlockDiagonalConv {
    using T = typename Config::A;
    using Shape = BlockDiagonalShape<Config>;
    using Block = BlockDiagonalTile<Shape>;
    using Window = typename Shape::Window;
    using Lines = BlockDiagonalLines<Shape, Shape::kMostSlots, Shape::kDepth>;
    static constexpr bool kBackward = Config::direction == Direction::backward_data;
    static_assert(!kBackward || Shape::kStride == 1);
    static_assert(kSame<T, typename Config::B> && kSame<T, typename Config::Out> && T::bytes == Shape::kBytes);
    static constexpr int kRing = Shape::kStages * Lines::kBytes;
    static constexpr int kRowPitch = Shape::kOwn * Shape::kBytes + 16,
                         kRowBytes = Shape::kTile * kRowPitch;  // of results
    static_assert(kRing + Shape::kThreads / Shape::kLanes * kRowBytes <= Config::shared_bytes);

    const KernelArgs& args;
    FrameGrid in, out;
    const DepthwiseTilesArgs& launch;
    int first_channel;
    SharedAddress shared;

    using Weights = u32[Shape::kDepth][Shape::kRows][Shape::kGroups][Shape::kPairs * 2 + Shape::kSingles];
    using Sums = float[Window::kWindow][Shape::kGroups][4];
    using Runs = ChannelRuns<ChainOf<Config>, T, 2>;
    // The part of the channels that a lane holds.
    struct Held {
        Weights weights;
        typename Runs::Bias bias[Shape::kGroups];
    };

    // Taps are met in reverse order on the way back.
    TILEWISE_DEVICE int before(int d, int taps) const {
        return kBackward ? taps - 1 - int(args.conv.pad[d]) : int(args.conv.pad[d]);
    }
    TILEWISE_DEVICE int own_channel() const { return first_channel + Shape::channel_warp() * Shape::kOwn; }
    // The first of a lane's two channels of every group, and of its sums.
    TILEWISE_DEVICE int lane_channel() const { return own_channel() + lane_index() % 4 * 2; }

    TILEWISE_DEVICE void load(Held& held) const {
        load_weights(held.weights);
        TILEWISE_UNROLL
        for (int g = 0; g < Shape::kGroups; ++g)
            held.bias[g] = Runs::read_bias(args, lane_channel() + g * Shape::kGroup);
    }
    // A lane has these of the diagonal matrices: elements (2 (l % 4), l / 4) and the one below.
    TILEWISE_DEVICE void load_weights(Weights& words) const {
        const int lane = lane_index(), n = lane / 4;
        SharedAddress shift = n % 2 * 16;
        hide(shift);
        const auto* w = static_cast<const typename T::Storage*>(args.b.data);
        TILEWISE_UNROLL
        for (int g = 0; g < Shape::kGroups; ++g) {
            const int channel = own_channel() + g * Shape::kGroup + n;
            const bool has = n / 2 == lane % 4 && channel < int(args.conv.groups);
            TILEWISE_UNROLL
            for (int tap = 0; tap < Shape::kTaps; ++tap) {
                const int line = tap / Shape::kColumns, at = kBackward ? Shape::kTaps - 1 - tap : tap;
                u32 value = 0;
                if (has) value = u32(w[Index(channel) * Shape::kTaps + at]) << shift;
                words[line / Shape::kRows][line % Shape::kRows][g][tap % Shape::kColumns] = value;
            }
        }
    }

    // Line u of a turn, plane z, against the rows that it meets. `pair` and `single` are the lane's pixels.
    static TILEWISE_DEVICE void multiply(SharedAddress pair, SharedAddress single, int u, int z, const Weights& weights,
                                         Sums& sums) {
        TILEWISE_UNROLL
        for (int g = 0; g < Shape::kGroups; ++g) {
            TILEWISE_UNROLL
            for (int p = 0; p < Shape::kPairs; ++p) {
                u32 a[4];
                load_matrices<false>(pair + Block::to_even_tap(p * 2) * Shape::kPitch + g * 16, a);
                TILEWISE_UNROLL
                for (int o = 0; o < Window::kWindow; ++o) {
                    const int row = Window::first_row(u) + o, r = Window::tap(u, row);
                    if (r < 0) continue;
                    const auto& w = weights[z][r][g];
                    multiply_add<T, T>(sums[Window::place(row)][g], a, w[p * 2], w[p * 2 + 1]);
                }
            }
        }
        if constexpr (Shape::kSingles > 0) {
            constexpr int last = Shape::kColumns - 1;
            TILEWISE_UNROLL
            for (int g = 0; g < Shape::kGroups; g += 2) {
                u32 a[4];
                load_matrices<false>(single + Block::to_even_tap(last) * Shape::kPitch + g * 16, a);
                TILEWISE_UNROLL
                for (int o = 0; o < Window::kWindow; ++o) {
                    const int row = Window::first_row(u) + o, r = Window::tap(u, row);
                    if (r < 0) continue;
                    TILEWISE_UNROLL
                    for (int e = 0; e < 2; ++e) {
                        const u32 half[2] = {a[e * 2], a[e * 2 + 1]};
                        multiply_add_half<T>(sums[Window::place(row)][g + e], half, weights[z][r][g + e][last]);
                    }
                }
            }
        }
    }
    static TILEWISE_DEVICE void open(int u, Sums& sums) {
        TILEWISE_UNROLL
        for (int o = 0; o < Window::kWindow; ++o) {
            const int row = Window::first_row(u) + o;
            if (!Window::opens(u, row)) continue;
            TILEWISE_UNROLL
            for (int g = 0; g < Shape::kGroups; ++g) {
                TILEWISE_UNROLL
                for (int e = 0; e < 4; ++e) sums[Window::place(row)][g][e] = 0.0f;
            }
        }
    }

    struct OwnOutputs {
        u32 at[2];  // in C, of the lane's first channel
        bool is_there[2];
    };
    // A row of a warp's 16 outputs, through a place of its own in shared memory so that a lane writes 16 bytes.
    struct Target {
        static constexpr int kWrites = Shape::kOwn / 16;
        char* to[kWrites];  // in the next row
        bool inside[kWrites];
        MatrixPlaces<kRowPitch, 8 * kRowPitch, 16> put;
        SharedAddress get, row_step;
        OwnOutputs own;
        int tile, top;  // of the next row

        template <bool called>
        TILEWISE_DEVICE void put_results(const BlockDiagonalConv& self, const float (&sums)[Shape::kGroups][4],
                                         const OwnOutputs& outputs, const Held& held) const {
            TILEWISE_UNROLL
            for (int g = 0; g < Shape::kGroups; g += 2) {
                u32 words[4];  // 8 outputs each
                TILEWISE_UNROLL
                for (int i = 0; i < 4; ++i) {
                    const int group = g + i / 2, half = i % 2, channel = self.lane_channel() + group * Shape::kGroup;
                    const float(&sum)[4] = sums[group];
                    const auto values = Runs::template finish<called>(
                        self.args, {{sum[half * 2], sum[half * 2 + 1]}}, outputs.at[half] + u32(group * Shape::kGroup),
                        channel, outputs.is_there[half] && channel < int(self.args.conv.groups), held.bias[group]);
                    words[i] = pack_pair<T>(values.x[0], values.x[1]);
                }
                put.put(g * 16, words);
            }
        }
        TILEWISE_DEVICE void write(const BlockDiagonalConv& self, const float (&sums)[Shape::kGroups][4],
                                   const Held& held) {
            if (Runs::in_registers(self.args)) {
                put_results<false>(self, sums, own, held);
            } else {
                // Looked up for every row: calls leave few registers.
                auto number = SharedAddress(tile);
                hide(number);
                put_results<true>(self, sums, self.own_outputs(Block(self.launch, int(number)), top), held);
            }
            TILEWISE_UNROLL
            for (int half = 0; half < 2; ++half) own.at[half] += row_step / Shape::kBytes;
            ++top;
            sync_warp();
            TILEWISE_UNROLL
            for (int i = 0; i < kWrites; ++i) {
                if (inside[i]) store_global<16>(to[i], load_shared<16>(get + i * (16 / kWrites) * kRowPitch));
                to[i] += row_step;
            }
            sync_warp();
        }
    };
    TILEWISE_DEVICE Target target(const Block& block, int tile, int top) const {
        const SharedAddress place = shared + kRing + thread_index() / Shape::kLanes * kRowBytes;
        Target t{{}, {}, decltype(Target::put)(place), 0, 0, {}, 0, 0};
        constexpr int chunks = Shape::kOwn / Shape::kGroup;
        const int lane = lane_index(), own = Shape::channel_warp() * Shape::kOwn;
        t.get = place + lane / chunks * kRowPitch + lane % chunks * 16;
        t.row_step = SharedAddress(out.line_bytes(Shape::kBytes));
        hide(t.get), hide(t.row_step);
        TILEWISE_UNROLL
        for (int i = 0; i < Target::kWrites; ++i) {
            const int channel = first_channel + own + lane % chunks * Shape::kGroup;
            const Output output = output_of(block, top, lane / chunks + i * (16 / Target::kWrites));
            t.inside[i] = output.is_there && channel < int(args.conv.groups);
            const Index at = Index(output.image) * out.image_stride + (output.offset + channel);
            t.to[i] = static_cast<char*>(args.c.data) + at * Shape::kBytes;
        }
        t.tile = tile, t.top = top;
        t.own = own_outputs(block, top);
        return t;
    }
    // One of a warp's 16 outputs of row `top`: from its image on in C.
    struct Output {
        int image, offset;
        bool is_there;
    };
    TILEWISE_DEVICE Output output_of(const Block& block, int top, int number) const {
        const int o = Shape::pixel_warp() * Shape::kTile + number, in_block = launch.across.small_quotient(o);
        int frame = block.first_frame + in_block;
        const int column = block.first_column + o - in_block * block.across();
        const bool is_there = in_block < launch.frames && frame < launch.total_frames && column < out.width;
        const int image = block.image_of(frame);
        return {image, out.offset(frame, top, column), is_there};
    }
    // The two outputs that a lane has sums of, 8 apart.
    TILEWISE_DEVICE OwnOutputs own_outputs(const Block& block, int top) const {
        OwnOutputs own;
        TILEWISE_UNROLL
        for (int half = 0; half < 2; ++half) {
            const Output output = output_of(block, top, lane_index() / 4 + half * 8);
            own.at[half] = u32(output.image) * u32(out.image_stride) + u32(output.offset + lane_channel());
            own.is_there[half] = output.is_there;
        }
        return own;
    }

    // Rows [top, top + rows) of the block's frames.
    TILEWISE_DEVICE void walk(int tile, int top, int rows, Held& held, bool& is_held) const {
        const Block block(launch, tile);
        const int padding = before(1, Shape::kRows) - top * Shape::kStride;
        // Lines above the image are passed over as far as no row ends there; rows that begin there have no sums yet.
        const int outside = padding < 0 ? 0 : padding < Shape::kRows ? padding : Shape::kRows - 1;
        const int skipped = outside / Shape::kStride, first_line = skipped * Shape::kStride - padding;
        const int steps = (rows - 1 - skipped) * Shape::kStride + Shape::kRows;
        Lines lines(args.a.data, in, block, true, first_line,
                    block.first_column * Shape::kStride - before(2, Shape::kColumns), before(0, Shape::kDepth),
                    first_channel, int(args.conv.groups));
        const auto has_line = [&](int step) { return step < steps && u32(first_line + step) < u32(in.height); };
        if (is_held) {
            wait_copies<0>();
            sync_block();  // the lines of the rows before have been read
        } else {
            griddep_wait();
        }
        TILEWISE_ROLLED
        for (int stage = 0; stage < Shape::kStages - 1; ++stage) {
            lines.copy(shared + stage * Lines::kBytes, has_line(stage));
            commit_copies();
        }
        if (!is_held) load(held);
        is_held = true;
        const int lane = lane_index(), first = Shape::pixel_warp() * Shape::kTile;
        const SharedAddress own = shared + block.slot(first + lane % 16) * Shape::kPitch +
                                  Shape::channel_warp() * Shape::kOwn * Shape::kBytes;
        SharedAddress pair = own + lane / 16 * block.to_next_tap() * Shape::kPitch, single = own + lane / 16 * 16;
        hide(pair), hide(single);
        Target to = target(block, tile, top);
        Sums sums = {};
        SharedAddress stage = 0, last = (Shape::kStages - 1) * Lines::kBytes;  // of the line, of the one before
        TILEWISE_ROLLED
        for (int turn = 0; turn < steps; turn += Window::kTurn) {
            TILEWISE_UNROLL
            for (int u = 0; u < Window::kTurn; ++u) {
                const int step = turn + u;
                if (step >= steps) return;  // all threads
                wait_copies<Shape::kStages - 2>();
                sync_block();
                lines.copy(shared + last, has_line(step + Shape::kStages - 1));
                commit_copies();
                open(u, sums);
                TILEWISE_UNROLL
                for (int z = 0; z < Shape::kDepth; ++z) {
                    const SharedAddress at = stage + z * Shape::kMostSlots * Shape::kPitch;
                    multiply(pair + at, single + at, u, z, held.weights, sums);
                }
                last = stage, stage = next_stage<Lines::kBytes, Shape::kStages>(stage);
                close(u, turn / Shape::kStride + skipped, rows, to, sums, held);
            }
        }
    }
    // The row whose last line is line u of a turn; `first` is the row whose first line begins the turn.
    TILEWISE_DEVICE void close(int u, int first, int rows, Target& to, const Sums& sums, const Held& held) const {
        TILEWISE_UNROLL
        for (int o = 0; o < Window::kWindow; ++o) {
            const int row = Window::first_row(u) + o;
            if (!Window::closes(u, row)) continue;
            if (first + row >= 0 && first + row < rows) to.write(*this, sums[Window::place(row)], held);
        }
    }

    // Blocks share all rows of all tiles of frames evenly.
    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        griddep_launch();
        const KernelConv& conv = args.conv;
        const FrameGrid in = kBackward ? frame_grid(conv.out, conv.y) : frame_grid(conv.in, conv.x);
        const FrameGrid out = kBackward ? frame_grid(conv.in, conv.x) : frame_grid(conv.out, conv.y);
        const DepthwiseTilesArgs& launch = TILEWISE_FAMILY_ARGS(DepthwiseTilesArgs, args);
        const int part = launch.channel_tiles.quotient(int(block_index()));
        const int tile = int(block_index()) - part * int(launch.channel_tiles.divisor);
        const BlockDiagonalConv self = {args, in, out, launch, tile * Shape::kChannels, shared_start()};
        DepthwiseRows left(launch, part);
        Held held;
        bool is_held = false;
        TILEWISE_ROLLED
        while (left.at < left.end) {
            const DepthwiseRows::Run run = left.next(launch);
            self.walk(run.tile, run.top, run.rows, held, is_held);
        }
    }
};

}  // namespace tilewise::cuda::depthwise_block_diagonal
