// SPDX-License-Identifier: MIT
// Depthwise convolution on matrix units: forward, and backward data, of stride 1 for 16-bit types, channels last. For one channel
// and one row of taps, 8 neighbouring outputs are 16 neighbouring inputs times a band matrix, whose columns are the row of taps,
// each one lower than the one before it. So one mma.sync computes a row of taps for 16 strips (toeplitz_shape.hpp); most of its
// products are with zero, which costs less than to do without them. A block walks down its strips line by line; while it
// multiplies one line, it turns the next one around, fetches later ones and writes the row of outputs before. A lane
// has the two channels of its warp for 4 outputs, which it finishes in registers (channel_runs.hpp).
//
// Floors on an H200, for each output element: one mma.sync for 128 outputs and a row of taps, at 132 x 0.6 / clock (3x3: 0.05
// ps, 7x7: 0.4 ps at 44 % useful products); bytes of one input and one output at 4.27e12 /s (0.94 ps): memory.
#pragma once
#include "../channel_runs.hpp"
#include "toeplitz_shape.hpp"

namespace tilewise::cuda::depthwise_toeplitz {

template <class Config>
struct ToeplitzConv {
    using T = typename Config::A;
    using Shape = ToeplitzShape;
    static constexpr bool kBackward = Config::direction == Direction::backward_data;
    static constexpr int kRows = Config::ct_filter[1], kColumns = Config::ct_filter[2];
    static_assert(kSame<T, typename Config::B> && kSame<T, typename Config::Out> && T::bytes == Shape::kBytes);
    static_assert(Config::threads == Shape::kThreads && Config::tile_n == Shape::kChannels);
    static_assert(Config::ct_filter[0] == 1 && kColumns + Shape::kOutputs - 1 <= Shape::kInputs);
    static_assert(Config::ct_stride[1] == 1 && Config::ct_stride[2] == 1);
    static_assert(Config::ct_dilation[1] <= 1 && Config::ct_dilation[2] <= 1);
    static constexpr int kTaps = kRows * kColumns;
    static constexpr int kStages = Config::ring_stages;  // lines under way
    static constexpr int kPlanes = kStages * Shape::kRawBytes,
                         kResults = kPlanes + 2 * ToeplitzLines<true>::kPlaneBytes;
    static_assert(kResults + 2 * Shape::kRowBytes <= Config::shared_bytes);

    const KernelArgs& args;
    PixelGrid in, out;
    int first_channel;
    SharedAddress shared;

    // Rows and columns of taps are met in reverse order on the way back.
    static TILEWISE_DEVICE int before(const KernelConv& conv, int d, int taps) {
        return kBackward ? taps - 1 - int(conv.pad[d]) : int(conv.pad[d]);
    }
    using Sums = float[Shape::kOwn][kRows][4];
    using Bands = u32[Shape::kOwn][kRows][2];
    using Lines = ToeplitzLines<true>;
    using Results = MatrixPlaces<16, 8 * 16, Shape::kRowPitch>;
    static_assert(Shape::kOwn == 2);
    using Runs = ChannelRuns<ChainOf<Config>, T, Shape::kOwn>;
    // The part of its warp's channels that a lane holds.
    struct Held {
        Bands bands;
        typename Runs::Bias bias;
    };

    // A lane has these of the band matrices: rows 2 (l % 4) and the one after it of column l / 4, and 8 below.
    TILEWISE_DEVICE void load_bands(int channel, Bands& bands) const {
        const int first = lane_index() % 4 * 2 - lane_index() / 4;  // the tap of row 2 (l % 4)
        const auto* w = static_cast<const typename T::Storage*>(args.b.data) + Index(channel) * kTaps +
                        (kBackward ? kTaps - 1 - first : first);
        TILEWISE_UNROLL
        for (int c = 0; c < Shape::kOwn; ++c) {
            const bool is_channel = channel + c < int(args.conv.groups);
            TILEWISE_UNROLL
            for (int i = 0; i < kRows * 4; ++i) {
                const int row = i / 4, j = i / 2 % 2, e = i % 2, tap = first + j * 8 + e;
                const int at = row * kColumns + j * 8 + e;
                u32 value = 0;
                if (is_channel && u32(tap) < u32(kColumns)) value = u32(w[c * kTaps + (kBackward ? -at : at)]);
                bands[c][row][j] = e == 0 ? value : bands[c][row][j] | value << 16;
            }
        }
    }

    // The row of outputs whose first line is line j of a turn.
    static TILEWISE_DEVICE void open(int j, Sums& sums) {
        TILEWISE_UNROLL
        for (int c = 0; c < Shape::kOwn; ++c) {
            TILEWISE_UNROLL
            for (int e = 0; e < 4; ++e) sums[c][j][e] = 0.0f;
        }
    }
    // Line j against every row of outputs that it meets.
    static TILEWISE_DEVICE void multiply(SharedAddress line, int j, const Bands& bands, Sums& sums) {
        TILEWISE_UNROLL
        for (int c = 0; c < Shape::kOwn; ++c) {
            u32 a[4];
            load_matrices<false>(line + c * Lines::kPitch, a);
            TILEWISE_UNROLL
            for (int r = 0; r < kRows; ++r)
                multiply_add<T, T>(sums[c][(j - r + kRows) % kRows], a, bands[c][r][0], bands[c][r][1]);
        }
    }
    // The outputs that a lane has sums of: two neighbours of a strip, and of the one 8 further.
    struct Outputs {
        int channel;
        u32 at[2], next,
            row_step;  // in C: the first of each strip in the next row; elements to its neighbour and to the row after
        bool inside[4];
    };
    TILEWISE_DEVICE Outputs outputs_of(const ToeplitzStrips& strips, int top) const {
        Outputs o;
        o.channel = first_channel + thread_index() / 32 * Shape::kOwn;
        o.next = u32(out.pixel_stride), o.row_step = u32(out.size[2]) * o.next;
        TILEWISE_UNROLL
        for (int i = 0; i < 2; ++i) {
            const int strip = lane_index() / 4 + i * 8, image = strips.image_of_strip(strip);
            const int first = strips.first_column + (strip - image * strips.across) * Shape::kOutputs,
                      column = first + lane_index() % 4 * 2;
            const bool has_strip =
                image < strips.images && strips.first_image + image < args.conv.images && o.channel < args.conv.groups;
            TILEWISE_UNROLL
            for (int e = 0; e < 2; ++e) o.inside[i * 2 + e] = has_strip && column + e < out.size[2];
            o.at[i] = u32(strips.first_image + image) * u32(out.image_stride) +
                      u32(top * out.size[2] + column) * o.next + u32(o.channel);
        }
        return o;
    }
    // The row of outputs whose last line was line j of a turn, as [channel][strip][8 outputs].
    TILEWISE_DEVICE void close(const Results& to, SharedAddress results, int j, const Sums& sums, int tile, int row,
                               Outputs& outputs, const Held& held) const {
        if (Runs::in_registers(args)) {
            put_results<false>(to, results, (j + 1) % kRows, sums, outputs, held);
        } else {
            // Looked up for every row: calls leave few registers.
            auto number = SharedAddress(tile);
            hide(number);
            const ToeplitzStrips strips(TILEWISE_FAMILY_ARGS(DepthwiseTilesArgs, args), int(number));
            put_results<true>(to, results, (j + 1) % kRows, sums, outputs_of(strips, row), held);
        }
        TILEWISE_UNROLL
        for (int i = 0; i < 2; ++i) outputs.at[i] += outputs.row_step;
    }
    template <bool called>
    TILEWISE_DEVICE void put_results(const Results& to, SharedAddress results, int place, const Sums& sums,
                                     const Outputs& outputs, const Held& held) const {
        typename Runs::Values values[4];
        TILEWISE_UNROLL
        for (int e = 0; e < 4; ++e) {
            values[e] = Runs::template finish<called>(args, {{sums[0][place][e], sums[1][place][e]}},
                                                      outputs.at[e / 2] + e % 2 * outputs.next, outputs.channel,
                                                      outputs.inside[e], held.bias);
        }
        u32 words[4];  // 8 strips each
        TILEWISE_UNROLL
        for (int i = 0; i < 4; ++i) words[i] = pack_pair<T>(values[i % 2 * 2].x[i / 2], values[i % 2 * 2 + 1].x[i / 2]);
        to.put(results, words);
    }

    // Two strips of results: turned around so that a lane has 4 neighbouring channels of one output of each, and written.
    struct Target {
        char* to[2];  // in the next row
        bool inside[2];
        SharedAddress lane_from, row_step;

        TILEWISE_DEVICE void write(SharedAddress results) {
            u32 words[4];
            load_matrices<true>(results + lane_from, words);
            TILEWISE_UNROLL
            for (int s = 0; s < 2; ++s) {
                if (inside[s]) store_global<8>(to[s], Packet<8>{{words[s * 2], words[s * 2 + 1]}});
                to[s] += row_step;
            }
        }
    };
    TILEWISE_DEVICE Target target(const ToeplitzStrips& strips, int top) const {
        Target t;
        const int lane = lane_index(), warp = thread_index() / 32, i = lane % 8, quarter = lane / 8;
        TILEWISE_UNROLL
        for (int s = 0; s < 2; ++s) {
            const int strip = warp * 2 + s, image = strips.image_of_strip(strip), channel = lane % 4 * 4;
            const int column = strips.first_column + (strip - image * strips.across) * Shape::kOutputs + lane / 4;
            t.inside[s] = image < strips.images && strips.first_image + image < args.conv.images &&
                          column < out.size[2] && first_channel + channel < args.conv.groups;
            const int offset = (top * out.size[2] + column) * int(out.pixel_stride) + first_channel + channel;
            const Index at = Index(strips.first_image + image) * int(out.image_stride) + offset;
            t.to[s] = static_cast<char*>(args.c.data) + at * Shape::kBytes;
        }
        const int channel = i / 2 * 4 + i % 2 + (quarter & 1) * 2;
        t.lane_from = channel * Shape::kRowPitch + (warp * 2 + (quarter >> 1)) * 16;
        t.row_step = SharedAddress(out.size[2] * out.pixel_stride * Shape::kBytes);
        hide(t.lane_from), hide(t.row_step);
        return t;
    }

    // Rows [top, top + rows) of a block's strips.
    TILEWISE_DEVICE void walk(int tile, int top, int rows, Held& held, bool& is_held) const {
        const ToeplitzStrips strips(TILEWISE_FAMILY_ARGS(DepthwiseTilesArgs, args), tile);
        const int shift = before(args.conv, 2, kColumns), padding = before(args.conv, 1, kRows) - top;
        const int own = thread_index() / 32 * Shape::kOwn, lane = lane_index(), quarter = lane / 8;
        // Lines above the image are passed over as far as no row ends there; rows that begin there have no sums yet.
        const int steps = rows + kRows - 1, skipped = padding < 0 ? 0 : padding < kRows ? padding : kRows - 1;
        const int first_line = skipped - padding;
        Lines lines(args.a.data, kBackward ? args.conv.y : args.conv.x, in.size[2], first_line, shift, args.conv,
                    strips, first_channel);
        const auto has_line = [&](int step) {
            return step < steps - skipped && u32(first_line + step) < u32(in.size[1]);
        };
        if (is_held) {
            wait_copies<0>();
            sync_block();  // the rows before are on their way
        }
        clear_raw<kStages * Shape::kRawBytes>(shared);
        sync_block();
        if (!is_held) griddep_wait();
        TILEWISE_ROLLED
        for (int stage = 0; stage < kStages; ++stage) {
            lines.copy(shared + stage * Shape::kRawBytes, has_line(stage));
            commit_copies();
        }
        // While the first lines are on their way.
        if (!is_held) {
            load_bands(first_channel + own, held.bands);
            held.bias = Runs::read_bias(args, first_channel + own);
        }
        is_held = true;
        Target to = target(strips, top);
        Outputs outputs = outputs_of(strips, top);
        const int row_pixel = strips.pixel((quarter & 1) * 8 + lane % 8) + (quarter >> 1) * 8;
        SharedAddress own_plane = shared + kPlanes + own * Lines::kPitch + row_pixel * Shape::kBytes;
        const Results own_results(shared + kResults + own * Shape::kRowPitch);
        hide(own_plane);
        Sums sums = {};
        wait_copies<kStages - 1>();
        sync_block();
        lines.turn(shared, shared + kPlanes);
        SharedAddress stage = 0, plane = 0, results = 0;  // of the line, and of the row before
        int row = skipped - (kRows - 1), step = 0;        // that the line is the last of
        const int last = in.size[1] - first_line;
        TILEWISE_ROLLED
        for (; row < rows;) {  // until it returns
            TILEWISE_UNROLL
            for (int j = 0; j < kRows; ++j, ++row, ++step) {
                wait_copies<kStages - 2>();
                sync_block();
                open(j, sums);
                if (step < last) {  // below are zeros
                    const SharedAddress next_plane = Lines::kPlaneBytes - plane;
                    lines.turn(shared + next_raw<kStages>(stage), shared + kPlanes + next_plane);
                    lines.copy(shared + stage, has_line(step + kStages));
                    commit_copies();
                    multiply(own_plane + plane, j, held.bands, sums);
                    stage = next_raw<kStages>(stage), plane = next_plane;
                }
                if (row > 0) to.write(shared + kResults + results);
                if (row >= 0) {
                    results = Shape::kRowBytes - results;
                    close(own_results, results, j, sums, tile, top + row, outputs, held);
                }
                if (row == rows - 1) {  // all threads
                    sync_block();
                    to.write(shared + kResults + results);
                    return;
                }
            }
        }
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        griddep_launch();
        const KernelConv& conv = args.conv;
        const PixelGrid in = kBackward ? pixel_grid(conv.out, conv.y) : pixel_grid(conv.in, conv.x);
        const PixelGrid out = kBackward ? pixel_grid(conv.in, conv.x) : pixel_grid(conv.out, conv.y);
        const DepthwiseTilesArgs& launch = TILEWISE_FAMILY_ARGS(DepthwiseTilesArgs, args);
        const int part = launch.channel_tiles.quotient(int(block_index()));
        const int tile = int(block_index()) - part * int(launch.channel_tiles.divisor);
        const ToeplitzConv self = {args, in, out, tile * Shape::kChannels, shared_start()};
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

}  // namespace tilewise::cuda::depthwise_toeplitz
