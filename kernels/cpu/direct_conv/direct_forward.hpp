// SPDX-License-Identifier: MIT
// Direct convolution, forward and backward data: lanes are output channels of all groups side by side, so that depthwise
// and grouped layers with few channels need no multiplication by zero. A part is a range of lines of the output (m) times
// a range of its channels (n). For blocks of tile_n channels the weights are packed (direct_pack.hpp); then come the lines,
// in each of them blocks of warp_n channels, and for each of those the line's residue classes (conv_walk.hpp), in blocks
// of pixels (direct_line.hpp). Outputs are written from registers, after a bias and the limits of relu or relu6. They go
// through the sums of a piece of a line if the epilogue has more, or if channels are not neighbours. Channels-first inputs
// are turned around piece by piece first.
// Floors: taps * (channels of a group) multiply-adds of kLanes outputs each, one a clock (half of it where bf16 comes in
// pairs); bytes: inputs and outputs once from memory, inputs once for every row of taps from the second-level cache.
#pragma once
#include "direct_line.hpp"
#include "direct_pack.hpp"

namespace tilewise::cpu::direct_conv {

// Sums held in registers: what inputs and weights leave of 32 (of 16 before AVX-512); permutations take some more. Where
// the warp tile has more pixels, a multiple of 7 is taken, since the widths of most layers are.
template <class Config>
constexpr int direct_pixels(int vectors) {
    const int sums = kVectorBytes < 64 ? 8 : Config::depthwise ? 28 : 20, most = vectors >= sums ? 1 : sums / vectors;
    if (Config::warp_m <= most) return Config::warp_m;
    return most > 7 ? most - most % 7 : most;
}

// Hands out scratch memory, a cache line at a time; without a base it counts.
struct Carver {
    char* base;
    Index used = 0;
    template <class T>
    TILEWISE_INLINE T* take(Index count) {
        T* p = reinterpret_cast<T*>(base + used);
        used += round_up(count * Index(sizeof(T)), kCacheLine);
        return p;
    }
};

template <class Config, class Units>
struct DirectForward {
    using In = typename Config::A;
    using Weight = typename Config::B;
    using Out = typename Config::Out;
    using Storage = typename In::Storage;
    using Acc = typename Units::Acc;
    using Task = LineTask<Storage>;
    static constexpr bool kBackward = Config::direction == Direction::backward_data;
    static constexpr int kVectors = Config::warp_n > kLanes ? Config::warp_n / kLanes : 1;
    static constexpr int kWidth = kVectors * kLanes, kPixels = direct_pixels<Config>(kVectors);
    static constexpr Index kBlockChannels = Config::tile_n > kWidth ? Config::tile_n / kWidth* kWidth : kWidth;
    static constexpr Index kPieceBlocks = 4;  // blocks of pixels whose sums wait for the epilogue together
    // Backward data takes apart what is strided, so its number of taps differs between the classes.
    static constexpr bool kKnown = Config::ct_filter[2] > 0 && Config::ct_stride[2] > 0 && !kBackward;
    static constexpr int kTaps = kKnown                                   ? Config::ct_filter[2]
                                 : kBackward && Config::ct_stride[2] == 1 ? Config::ct_filter[2]
                                                                          : 0;
    static constexpr int kStep = kBackward ? 1 : Config::ct_stride[2];
    using Packer = WeightPacker<Units, Weight, kWidth>;

    const KernelArgs& args;
    const KernelConv& conv;
    WeightMap map;
    KernelActivation in, out;
    const Index *in_size, *out_size;
    Index class_count[kMaxKernelDims];
    // In scratch memory:
    WalkDim* outer[2];  // the classes of the outer dimensions
    LineClass* classes;
    TapPlace* places;
    TapRow<Storage>*rows, *staged_rows;
    u32* weights;
    Acc* sums;
    Storage* stage;  // a piece of every row of inputs, channels last
    Task* tasks;     // of the classes of a line
    Lanes* lanes;    // of the vectors from begin_channel on
    Index stage_channels, piece, pixel_bytes, begin_channel;
    ShortChain chain;
    bool writes_outputs;

    explicit TILEWISE_INLINE DirectForward(const KernelArgs& given) : args(given), conv(given.conv) {
        map.backward = kBackward;
        map.outputs = kBackward ? conv.c : conv.k, map.inputs = kBackward ? conv.k : conv.c;
        map.all_outputs = conv.groups * map.outputs;
        map.line_taps = conv.filter[2], map.taps = conv.filter[0] * conv.filter[1] * conv.filter[2];
        map.filter_size = weights_per_filter(conv);
        in = kBackward ? conv.y : conv.x, out = kBackward ? conv.x : conv.y;
        in_size = kBackward ? conv.out : conv.in, out_size = kBackward ? conv.in : conv.out;
        for (int d = 0; d < kMaxKernelDims; ++d) class_count[d] = kBackward ? classes_along(conv, d) : 1;
        chain = short_chain(args);
        writes_outputs = is_limited(chain) && !chain.add && out.is_channels_last() &&
                         (!Units::is_integer || (kSame<Out, Int32> && is_plain(args)));
        pixel_bytes = writes_outputs ? out.pixel_stride * kBytes<Out> : kWidth * Index(sizeof(Acc));
        piece = kPieceBlocks * kPixels * class_count[2];
        // The inputs that a block of outputs needs: those of all groups it touches.
        stage_channels = ((kWidth - 2) / map.outputs + 2) * map.inputs;
    }

    static TILEWISE_INLINE WalkDim walk_dim(const KernelConv& conv, int d, Index r) {
        return kBackward ? backward_dim(conv, d, r) : forward_walk(conv).dim[d];
    }
    // Pixels of a line of inputs that a piece of outputs can meet.
    TILEWISE_INLINE Index stage_pixels() const {
        if (in.is_channels_last()) return 0;
        const Index positions = kPieceBlocks * kPixels;
        const Index most = positions * (kBackward ? 1 : conv.stride[2]) + conv.filter[2] * conv.dilation[2];
        return least(most, in_size[2]);
    }

    TILEWISE_OUTER Index carve(char* base) {
        Carver carver = {base};
        const Index tap_rows = map.taps / map.line_taps;
        outer[0] = carver.take<WalkDim>(class_count[0]);
        outer[1] = carver.take<WalkDim>(class_count[1]);
        classes = carver.take<LineClass>(class_count[2]);
        places = carver.take<TapPlace>(map.line_taps);
        rows = carver.take<TapRow<Storage>>(tap_rows);
        staged_rows = carver.take<TapRow<Storage>>(tap_rows);
        const Index channels = least(kBlockChannels, round_up(map.all_outputs, kWidth));
        tasks = carver.take<Task>(class_count[2]);
        lanes = carver.take<Lanes>(channels / kLanes);
        weights = carver.take<u32>(channels * map.taps * (map.inputs / Units::depth));
        sums = carver.take<Acc>(writes_outputs ? 0 : piece * kWidth);
        // A plane's last row may have no other to pair with: its second line is left out, but has a place.
        const Index lines = conv.filter[0] * round_up(conv.filter[1], Units::rows);
        stage = carver.take<Storage>(lines * stage_pixels() * stage_channels);
        return carver.used;
    }

    TILEWISE_OUTER void plan_classes() {
        for (int d = 0; d < 2; ++d) {
            for (Index r = 0; r < class_count[d]; ++r) outer[d][r] = walk_dim(conv, d, r);
        }
        Index offset = 0;
        for (Index t = 0; t < map.line_taps; ++t) places[t] = {-1, 0};
        for (Index r = 0; r < class_count[2]; ++r) {
            WalkDim x = walk_dim(conv, 2, r);
            if (x.tap_shift < 0) {  // from the other end, so that inputs come in order
                x.in_first += (x.taps - 1) * x.tap_shift, x.tap_first += (x.taps - 1) * x.tap_step;
                x.tap_shift = -x.tap_shift, x.tap_step = -x.tap_step;
            }
            for (Index i = 0; i < x.taps; ++i) places[x.tap_first + i * x.tap_step] = {r, i};
            classes[r] = {x, offset};
            offset += x.taps;
        }
    }

    // The lines of inputs that line `line` of the outputs meets.
    TILEWISE_OUTER Index find_rows(Index line) {
        const Index image = line / (out_size[0] * out_size[1]), o0 = line / out_size[1] % out_size[0];
        const Index o1 = line % out_size[1];
        const Index step0 = kBackward ? class_stride(conv, 0) : 1, step1 = kBackward ? class_stride(conv, 1) : 1;
        const WalkDim &y = outer[0][o0 % step0], &x = outer[1][o1 % step1];
        const Index j0 = o0 / step0, j1 = o1 / step1;
        const TapRange r0 = y.inside(j0), r1 = x.inside(j1);
        const Storage* base = static_cast<const Storage*>(args.a.data) + image * in.image_stride;
        Index count = 0;
        for (Index i0 = r0.begin; i0 < r0.end; ++i0) {
            for (Index i1 = r1.begin; i1 < r1.end; ++i1) {
                const Index p0 = j0 * y.in_step + y.in_first + i0 * y.tap_shift;
                const Index p1 = j1 * x.in_step + x.in_first + i1 * x.tap_shift;
                const Index tap = (y.tap_first + i0 * y.tap_step) * conv.filter[1] + x.tap_first + i1 * x.tap_step;
                rows[count++] = {base + (p0 * in_size[1] + p1) * in_size[2] * in.pixel_stride, tap, 0, kLowerWords};
            }
        }
        return Units::rows == 2 ? pair_rows(count, x.tap_step) : count;
    }

    // Puts together rows that follow each other in a plane of the filter.
    TILEWISE_INLINE Index pair_rows(Index count, Index step) {
        Index pairs = 0;
        for (Index i = 0; i < count; ++pairs) {
            const TapRow<Storage> row = rows[i];
            const Index next = row.number + step, plane = conv.filter[1];
            const bool paired = i + 1 < count && rows[i + 1].number == next && next / plane == row.number / plane;
            rows[pairs] = row;
            if (paired) rows[pairs].second = rows[i + 1].in - row.in, rows[pairs].words = kBothWords;
            i += paired ? 2 : 1;
        }
        return pairs;
    }

    // The last pixel where vectors up to channel `end` may be read whole without leaving the tensor, whichever the row.
    TILEWISE_OUTER Index last_whole(Index end, Index count) const {
        const Index pixels = in_size[0] * in_size[1] * in_size[2];
        const Storage* limit = static_cast<const Storage*>(args.a.data) + conv.images * pixels * in.pixel_stride;
        const Lanes& last = lanes[ceil_div(end - begin_channel, kLanes) - 1];
        const Index reach = last.first + round_up(last.reach, kLanes) * Units::depth + map.inputs;
        Index slack = in_size[2] * in.pixel_stride;
        for (Index i = 0; i < count; ++i) {
            const Index second = rows[i].second > 0 ? rows[i].second : 0;
            slack = least<Index>(slack, limit - rows[i].in - second - reach);
        }
        return slack < 0 ? -1 : slack / in.pixel_stride;
    }

    TILEWISE_OUTER void stage_row(Storage* to, const Storage* from, Index channels, Index pixels) const {
        for (Index c = 0; c < channels; ++c) {
            for (Index p = 0; p < pixels; ++p) {
                to[p * stage_channels + c] = from[c * in.channel_stride + p * in.pixel_stride];
            }
        }
    }

    // Copies what the piece meets, pixels from `low` to `high`, into rows with the block's channels side by side.
    TILEWISE_OUTER void stage_rows(Index first_channel, Index count, Index low, Index high) {
        const Index channels = least(stage_channels, conv.groups * map.inputs - first_channel);
        for (Index i = 0; i < count; ++i) {
            Storage* to = stage + i * stage_pixels() * stage_channels;
            staged_rows[i] = {to - first_channel, rows[i].number, 0, rows[i].words};
            const Storage* from = rows[i].in + first_channel * in.channel_stride + low * in.pixel_stride;
            stage_row(to, from, channels, high - low);
            if (rows[i].words == kLowerWords) continue;
            staged_rows[i].second = count * stage_pixels() * stage_channels;
            stage_row(to + staged_rows[i].second, from + rows[i].second, channels, high - low);
        }
    }

    template <Check check, bool spread, int skip_left = 0, int skip_right = 0>
    using Block = LineBlock<Units, Out, kPixels, kVectors, check, spread, kTaps, kStep, skip_left, skip_right>;
    using RunBlock = void (*)(const Task& task, const Lanes* lanes, Index j, Index valid, char* out);

    // The kind of block for `pixels` positions that read pixels `first` to `last`.
    template <bool spread>
    static TILEWISE_INLINE RunBlock choose_block(const Task& task, Index pixels, Index first, Index last) {
        // A depthwise layer with several outputs for each input is rare: one kind of block serves it.
        constexpr bool kRare = Config::depthwise && spread;
        const WalkDim& x = task.x;
        const bool whole = task.reads_whole && least(last, x.in_size - 1) <= task.last_whole;
        if constexpr (!kRare) {
            const bool is_known = kTaps == 0 || (x.tap_shift == 1 && x.taps == kTaps && x.in_step == kStep);
            const Index left = first < 0 ? -first : 0, right = last < x.in_size ? 0 : last - x.in_size + 1;
            if (whole && pixels == kPixels && is_known) {
                if (left == 0 && right == 0) return Block<Check::none, spread>::run;
                if constexpr (kTaps > 1) {
                    constexpr int kSkip = kTaps / 2;  // what usual padding leaves outside
                    if (left == kSkip && right == 0) return Block<Check::none, spread, kSkip, 0>::run;
                    if (left == 0 && right == kSkip) return Block<Check::none, spread, 0, kSkip>::run;
                    if (left == kSkip && right == kSkip) return Block<Check::none, spread, kSkip, kSkip>::run;
                }
            }
            if (whole) return Block<Check::edges, spread>::run;
        }
        return Block<Check::lanes, spread>::run;
    }

    // The positions of one class, for one block of channels.
    template <bool spread>
    TILEWISE_NOINLINE static void run_class(Task& task, const Lanes* lanes, char* to) {
        const WalkDim& x = task.x;
        task.reads_whole = task.channels == kWidth;
        for (int v = 0; v < kVectors; ++v) task.reads_whole = task.reads_whole && lanes[v].reach <= kLanes;
        Index j = task.begin, left = task.end - j;
        to += task.out_at;
        for (; left > 0; j += kPixels, left -= kPixels, to += kPixels * task.out_stride) {
            const Index valid = least<Index>(left, kPixels), first = j * x.in_step + x.in_first;
            const Index last = first + (valid - 1) * x.in_step + (x.taps - 1) * x.tap_shift;
            choose_block<spread>(task, valid, first, last)(task, lanes, j, valid, to);
        }
    }

    // Plans what all blocks of channels have in common for output pixels x0 to x1 of a line: low and high bound the inputs.
    TILEWISE_OUTER void plan_piece(Index count, Index end, Index x0, Index x1, Index low, Index high) {
        const bool staged = !in.is_channels_last();
        for (Index r = 0; r < class_count[2]; ++r) {
            Task& task = tasks[r];
            task = {};
            task.rows = staged ? staged_rows : rows, task.row_count = count, task.steps = map.inputs / Units::depth;
            task.pixel_stride = staged ? stage_channels : in.pixel_stride;
            task.last_whole = staged ? -1 : last_whole(end, count);
            task.x = classes[r].x;
            task.x.in_first -= low, task.x.in_size = high - low;
            const Index s = task.x.out_step;
            task.begin = ceil_div(x0 - r, s), task.end = ceil_div(x1 - r, s);
            task.writes = !writes_outputs ? Writes::sums : is_plain(args) ? Writes::outputs : Writes::finished;
            task.low = chain.low, task.high = chain.high;
            task.out_at = (r + task.begin * s - x0) * pixel_bytes, task.out_stride = s * pixel_bytes;
        }
    }

    // Output pixels x0 to x1 of a line for channels up to `end`; `first` is the line's first pixel in its image.
    TILEWISE_NOINLINE void run_piece(const OutView& image_out, Index count, Index first, Index end, Index x0,
                                     Index x1) {
        const bool spread = !Config::depthwise || map.outputs != 1 || map.inputs != 1;
        const Index row_words = map.taps / map.line_taps * (map.inputs / Units::depth) * kWidth;
        Index low = 0, high = in_size[2];
        if (!in.is_channels_last()) find_pixels(x0, x1, low, high);
        plan_piece(count, end, x0, x1, low, high);
        const u32* packed = weights;
        const Lanes* block_lanes = lanes;
        for (Index channel = begin_channel; channel < end; channel += kWidth) {
            if (!in.is_channels_last()) stage_rows(block_lanes->first, count, low, high);
            char* to = writes_outputs ? image_out.c + (first + x0) * pixel_bytes + channel * kBytes<Out>
                                      : reinterpret_cast<char*>(sums);
            const Index channels = least<Index>(kWidth, map.all_outputs - channel);
            for (Index r = 0; r < class_count[2]; ++r) {
                Task& task = tasks[r];
                task.channels = channels, task.weights = packed + classes[r].offset * row_words;
                task.bias = chain.bias ? image_out.bias_by_col + channel * kBytes<Out> : nullptr;
                if (Config::depthwise && !spread) {
                    run_class<false>(task, block_lanes, to);
                } else {
                    run_class<true>(task, block_lanes, to);
                }
            }
            if (!writes_outputs) {
                image_out.finish(image_out, image_out.place(first + x0, channel), sums, kWidth, x1 - x0, channels);
            }
            packed += map.line_taps * row_words, block_lanes += kVectors;
        }
    }

    // The input pixels that outputs x0 to x1 can meet.
    TILEWISE_OUTER void find_pixels(Index x0, Index x1, Index& low, Index& high) const {
        Index least_at = in_size[2], most_at = -1;
        for (Index r = 0; r < class_count[2]; ++r) {
            const WalkDim& x = classes[r].x;
            const Index begin = ceil_div(x0 - r, x.out_step), end = ceil_div(x1 - r, x.out_step);
            if (begin >= end || x.taps == 0) continue;
            const Index at = begin * x.in_step + x.in_first;
            const Index last = (end - 1) * x.in_step + x.in_first + (x.taps - 1) * x.tap_shift;
            least_at = least(least_at, at), most_at = last > most_at ? last : most_at;
        }
        low = least_at < 0 ? 0 : least_at, high = least(most_at + 1, in_size[2]);
        if (low >= high) low = high = 0;
    }

    TILEWISE_OUTER void run_line(const OutView& whole, Index line, Index end) {
        const Index lines = out_size[0] * out_size[1], image = line / lines;
        OutView image_out = whole;
        const Index offset = image * out.image_stride * kBytes<Out>;
        image_out.c += offset;
        for (const char*& d : image_out.d) d += d ? offset : 0;
        const Index count = find_rows(line), first = line % lines * out_size[2];
        const Index width = writes_outputs && in.is_channels_last() ? out_size[2] : piece;
        for (Index x = 0; x < out_size[2]; x += width) {
            run_piece(image_out, count, first, end, x, least(x + width, out_size[2]));
        }
    }

    // Gets ready for channels begin_channel to `end`.
    TILEWISE_OUTER void plan_channels(Index end) {
        const Packer packer = {map,
                               classes,
                               places,
                               static_cast<const typename Weight::Storage*>(args.b.data),
                               outer[1][0].tap_step,
                               conv.filter[1]};
        packer.pack(weights, begin_channel, end);
        for (Index i = 0; i < ceil_div(end - begin_channel, kWidth) * kVectors; ++i) {
            const Index channel = least<Index>(begin_channel + i * kLanes, map.all_outputs - 1);
            lanes[i] = lanes_of<Units>(channel, map.all_outputs, map.outputs, map.inputs);
        }
    }

    TILEWISE_OUTER static void run(const KernelArgs& args, const KernelPart& part, void* scratch) {
        DirectForward task(args);
        task.carve(static_cast<char*>(scratch));
        task.plan_classes();
        const OutView out = out_view<Out, Acc>(args, 0, false);
        for (Index n = part.n_begin; n < part.n_end; n += kBlockChannels) {
            const Index end = least(n + kBlockChannels, part.n_end);
            task.begin_channel = n;
            task.plan_channels(end);
            for (Index line = part.m_begin; line < part.m_end; ++line) task.run_line(out, line, end);
        }
    }
    TILEWISE_OUTER static Index scratch_bytes(const KernelArgs& args) {
        DirectForward task(args);
        return task.carve(nullptr);
    }
};

}  // namespace tilewise::cpu::direct_conv
