// SPDX-License-Identifier: MIT
// Direct convolution, backward weight: dw[o][tap][c] = sum over images and pixels of dy[pixel][o] * x[pixel at tap][c], with
// the output channels o of all groups as lanes. A part is a range of channels (n) and one part of the reduction, which is
// cut between lines of dy. For blocks of tile_n channels the sums of all taps wait in scratch memory; along a line those
// of a few taps are in registers (direct_weight_block.hpp). In the end sums are turned around into GKYXC. Partial sums of a
// split reduction (or of two_stage) go to the workspace in that order too and are added up part by part: always the same
// bits.
// Floors: taps * (channels of a group) multiply-adds for each kLanes elements of dy, one a clock; bytes: dy and x once from
// memory, x once for every row of taps (for every three of a known 3x3 filter) from the second-level cache.
#pragma once
#include "../../common/conv_walk.hpp"
#include "../primitives.hpp"
#include "direct_forward.hpp"
#include "direct_weight_block.hpp"

namespace tilewise::cpu::direct_conv {

template <class Config>
struct DirectWeight {
    using Dy = typename Config::A;
    using X = typename Config::B;
    using Out = typename Config::Out;
    using StorageY = typename Dy::Storage;
    using StorageX = typename X::Storage;
    using Line = WeightLine<StorageY, StorageX>;
    static constexpr int kVectors = Config::warp_n > kLanes ? Config::warp_n / kLanes : 1, kWidth = kVectors * kLanes;
    static constexpr Index kBlockChannels = Config::tile_n > kWidth ? Config::tile_n / kWidth* kWidth : kWidth;

    const KernelArgs& args;
    const KernelConv& conv;
    Walk walk_y;
    Index taps, line_taps, channels, filter_size;
    // In scratch memory:
    float* sums;  // [block of kWidth channels][tap][channel of x][lane]
    Lanes* lanes;
    float* turned;      // [lane][tap][channel of x], for the epilogue
    StorageY* stage_y;  // a line of dy and of x, channels last
    StorageX* stage_x;
    Index stage_channels;

    explicit TILEWISE_INLINE DirectWeight(const KernelArgs& given) : args(given), conv(given.conv) {
        walk_y = forward_walk(conv);
        line_taps = conv.filter[2], taps = conv.filter[0] * conv.filter[1] * line_taps;
        channels = conv.groups * conv.k, filter_size = taps * conv.c;
        stage_channels = ((kWidth - 2) / conv.k + 2) * conv.c;
    }
    TILEWISE_INLINE bool is_staged() const { return !conv.x.is_channels_last() || !conv.y.is_channels_last(); }

    TILEWISE_OUTER Index carve(char* base) {
        Carver carver = {base};
        const Index block = least(kBlockChannels, round_up(channels, kWidth));
        sums = carver.take<float>(block * filter_size);
        lanes = carver.take<Lanes>(block / kLanes);
        turned = carver.take<float>(kLanes * round_up(filter_size, kLanes));
        stage_y = carver.take<StorageY>(is_staged() ? conv.out[2] * kWidth : 0);
        stage_x = carver.take<StorageX>(is_staged() ? conv.in[2] * stage_channels : 0);
        return carver.used;
    }

    template <class Storage>
    TILEWISE_OUTER static void stage(Storage* to, Index to_stride, const Storage* from, const KernelActivation& t,
                                     Index pixels, Index count) {
        for (Index c = 0; c < count; ++c) {
            for (Index p = 0; p < pixels; ++p) to[p * to_stride + c] = from[c * t.channel_stride + p * t.pixel_stride];
        }
    }

    // The same for kMostRows rows of taps at once, all of whose lines may be read in whole vectors.
    TILEWISE_INLINE bool add_rows(Line line, Index channel, float* to, const Lanes* block) {
        using Block = WeightBlock<Config, true, !Config::depthwise>;
        const WalkDim& x = line.walk;
        const bool fits = !Config::depthwise || (conv.c == 1 && conv.k == 1);
        if constexpr (Block::kTakesRows) {
            if (!fits || x.tap_shift != 1 || x.in_step != Block::kStep || x.taps != Block::kTaps) return false;
            line.dy += channel;
            for (const StorageX*& p : line.x) p += block->first;
            const Index stride = conv.c * kWidth;
            for (Index c = 0; c < conv.c; ++c, to += kWidth) {
                Block::template run_taps<Block::kTaps, Block::kStep, kMostRows>(line, 0, to, stride, line_taps * stride,
                                                                                block);
                for (const StorageX*& p : line.x) ++p;
            }
            return true;
        }
        return false;
    }

    // Adds one line of dy with one row of taps to the sums of kWidth channels.
    TILEWISE_NOINLINE void add_row(Line line, Index channel, bool whole, float* to, const Lanes* block) {
        const bool spread = !Config::depthwise || conv.c != 1 || conv.k != 1;
        line.dy += channel, line.x[0] += block->first;
        for (Index c = 0; c < conv.c; ++c, ++line.x[0], to += kWidth) {
            const Index stride = conv.c * kWidth;
            if (!whole || (Config::depthwise && spread)) {
                WeightBlock<Config, false, true>::run(line, to, stride, block);
            } else {
                WeightBlock<Config, true, !Config::depthwise>::run(line, to, stride, block);
            }
        }
    }

    // Whether a line of x may be read in whole vectors without leaving the tensor.
    TILEWISE_INLINE bool reads_whole(const StorageX* x, const Lanes* block, Index channel) const {
        if (channel + kWidth > channels) return false;
        const Lanes& last = block[kVectors - 1];
        const auto* x_end =
            static_cast<const StorageX*>(args.b.data) + conv.images * walk_y.in_pixels * conv.x.pixel_stride;
        const Index reach = last.first + round_up(last.reach, kLanes) + conv.c;
        return x_end - x >= (conv.in[2] - 1) * conv.x.pixel_stride + reach;
    }

    // One line of dy, all rows of taps and all channels of the block.
    TILEWISE_OUTER void add_line(Index number, Index begin, Index end) {
        const Index lines = conv.out[0] * conv.out[1], image = number / lines;
        const Index j0 = number / conv.out[1] % conv.out[0], j1 = number % conv.out[1];
        const WalkDim &d0 = walk_y.dim[0], &d1 = walk_y.dim[1];
        const TapRange r0 = d0.inside(j0), r1 = d1.inside(j1);
        const Index pixel = number % lines * conv.out[2];
        const auto* dy =
            static_cast<const StorageY*>(args.a.data) + image * conv.y.image_stride + pixel * conv.y.pixel_stride;
        const auto* image_x = static_cast<const StorageX*>(args.b.data) + image * conv.x.image_stride;
        float* to = sums;
        const Lanes* block = lanes;
        for (Index channel = begin; channel < end; channel += kWidth, to += filter_size * kWidth, block += kVectors) {
            if (is_staged()) {
                stage(stage_y, kWidth, dy + channel * conv.y.channel_stride, conv.y, conv.out[2],
                      least<Index>(kWidth, channels - channel));
            }
            for (Index i0 = r0.begin; i0 < r0.end; ++i0) {
                const Index p0 = j0 * d0.in_step + d0.in_first + i0 * d0.tap_shift;
                for (Index i1 = r1.begin; i1 < r1.end; ++i1) {
                    const Index p1 = j1 * d1.in_step + d1.in_first + i1 * d1.tap_shift;
                    const Index below = conv.in[2] * conv.x.pixel_stride;
                    const auto* x = image_x + (p0 * conv.in[1] + p1) * below;
                    float* row = to + (i0 * conv.filter[1] + i1) * line_taps * conv.c * kWidth;
                    Line line = {dy, {x, x, x}, conv.y.pixel_stride, conv.x.pixel_stride, walk_y.dim[2]};
                    bool whole = reads_whole(x, block, channel);
                    if (is_staged()) {
                        const Index first = block->first, count = least(stage_channels, conv.groups * conv.c - first);
                        stage(stage_x, stage_channels, x + first * conv.x.channel_stride, conv.x, conv.in[2], count);
                        line = {stage_y - channel, {stage_x - first}, kWidth, stage_channels, walk_y.dim[2]};
                        whole = false;
                    } else if (i1 == 0 && r1.end == kMostRows) {
                        for (int i = 1; i < kMostRows; ++i) line.x[i] = x + i * d1.tap_shift * below;
                        if (reads_whole(line.x[kMostRows - 1], block, channel) && add_rows(line, channel, row, block)) {
                            break;
                        }
                    }
                    add_row(line, channel, whole, row, block);
                }
            }
        }
    }

    // Sums of up to kLanes channels, [element][lane], as rows of elements: through the epilogue, or straight to dw.
    TILEWISE_NOINLINE void write_lanes(const OutView& out, const float* from, Index channel, bool straight,
                                       bool partial) {
        const Index count = least<Index>(kLanes, channels - channel), row = round_up(filter_size, kLanes);
        for (Index e = 0; e < filter_size; e += kLanes) {
            const Index elements = least<Index>(kLanes, filter_size - e);
            U v[kLanes];
            for (Index i = 0; i < kLanes; ++i) v[i] = i < elements ? load<U>(from + (e + i) * kWidth) : U{};
            transpose(v);
            for (Index l = 0; l < count; ++l) {
                if (!straight) {
                    store(turned + l * row + e, v[l]);
                    continue;
                }
                char* to = out.c + ((channel + l) * filter_size + e) * out.element_bytes;
                if (partial) {
                    write_values<Fp32>(to, as_float(v[l]), elements);
                } else {
                    write_values<Out>(to, as_float(v[l]), elements);
                }
            }
        }
        if (!straight) out.finish(out, out.place(channel, 0), turned, row, count, filter_size);
    }

    // Whether sums meet in the workspace first.
    static TILEWISE_INLINE bool is_partial(const KernelArgs& args) {
        return args.split_k > 1 || Config::two_stage || Config::split_image;
    }

    TILEWISE_OUTER static void run(const KernelArgs& args, const KernelPart& part, void* scratch) {
        DirectWeight task(args);
        task.carve(static_cast<char*>(scratch));
        OutView out = out_view<Out, float>(args, 0, false);
        const bool partial = is_partial(args), straight = partial || (is_plain(args) && args.beta == 0.0f);
        if (partial) {
            out.element_bytes = sizeof(float);
            out.c = reinterpret_cast<char*>(static_cast<float*>(args.workspace) +
                                            part.k_part * task.channels * task.filter_size);
        }
        const Index lines = args.conv.images * args.conv.out[0] * args.conv.out[1];
        const Index first = lines * part.k_part / args.split_k, last = lines * (part.k_part + 1) / args.split_k;
        for (Index n = part.n_begin; n < part.n_end; n += kBlockChannels) {
            const Index end = least(n + kBlockChannels, part.n_end), width = round_up(end - n, kWidth);
            __builtin_memset(task.sums, 0, width * task.filter_size * sizeof(float));
            for (Index i = 0; i < width / kLanes; ++i) {
                const Index channel = least<Index>(n + i * kLanes, task.channels - 1);
                task.lanes[i] = lanes_of<SingleUnits<X>>(channel, task.channels, args.conv.k, args.conv.c);
                if (n + i * kLanes >= task.channels) task.lanes[i].valid = 0;
            }
            for (Index line = first; line < last; ++line) task.add_line(line, n, end);
            for (Index c = n; c < end; c += kLanes) {
                const float* from = task.sums + (c - n) / kWidth * kWidth * task.filter_size + (c - n) % kWidth;
                task.write_lanes(out, from, c, straight, partial);
            }
        }
    }

    // Nothing in the epilogue of dw depends on the channel, so its rows are one long row.
    TILEWISE_OUTER static void reduce(const KernelArgs* args, const KernelPart* part) {
        constexpr Index kReduceCols = 16 * kLanes;
        const Index size = args->m * args->n * args->batch, row = args->n;
        const OutView out = out_view<Out, float>(*args, 0, false);
        alignas(kCacheLine) float total[kReduceCols];
        for (Index j = part->n_begin * row; j < part->n_end * row; j += kReduceCols) {
            const Index count = least(kReduceCols, part->n_end * row - j);
            for (Index q = 0; q < count; q += kLanes) {
                const float* from = static_cast<const float*>(args->workspace) + j + q;
                F sum = {};
                for (int s = 0; s < args->split_k; ++s, from += size) {
                    sum +=
                        count - q >= kLanes ? load<F>(from) : load_first<F>(from, (count - q) * Index(sizeof(float)));
                }
                store(total + q, sum);
            }
            out.finish(out, out.place(0, j), total, kReduceCols, 1, count);
        }
    }
    TILEWISE_OUTER static Index scratch_bytes(const KernelArgs& args) {
        DirectWeight task(args);
        return task.carve(nullptr);
    }
};

}  // namespace tilewise::cpu::direct_conv
