// SPDX-License-Identifier: MIT
// Direct convolution, backward weight: dw[o][tap][c] = sum over images and pixels of dy[pixel][o] * x[pixel at tap][c], with
// the output channels o of all groups as lanes. A part is a range of channels (n) and one part of the reduction, which is
// cut between lines of dy. For blocks of tile_n channels the sums of all taps wait in scratch memory; along a line those
// of a few taps are in registers: a block of p pixels holds p vectors of dy and reads p + t - 1 vectors of x for t taps,
// so p * t multiply-adds take 2p + t - 1 loads. In the end sums are turned around into GKYXC. Partial sums of a split
// reduction (or of two_stage) go to the workspace in that order too and are added up part by part: always the same bits.
// Floors: taps * (channels of a group) multiply-adds for each kLanes elements of dy, one a clock; bytes: dy and x once from
// memory, x once for every row of taps (for every three of a known 3x3 filter) from the second-level cache.
#pragma once
#include "../common/conv_walk.hpp"
#include "direct_forward.hpp"
#include "primitives.hpp"

namespace tilewise::cpu {

inline constexpr int kMostRows = 3;  // rows of taps that are taken at once

// A line of dy and the lines of x that one or more rows of taps lead to.
template <class StorageY, class StorageX>
struct WeightLine {
    const StorageY* dy;
    const StorageX* x[kMostRows];
    Index y_stride, x_stride;  // between pixels
    WalkDim walk;
};

template <class Config, bool whole, bool spread>
struct WeightBlock {
    using UnitsY = SingleUnits<typename Config::A>;
    using UnitsX = SingleUnits<typename Config::B>;
    using Line = WeightLine<typename UnitsY::Storage, typename UnitsX::Storage>;
    using StorageX = typename UnitsX::Storage;
    static constexpr int kVectors = Config::warp_n > kLanes ? Config::warp_n / kLanes : 1, kWidth = kVectors * kLanes;
    static constexpr int kMostPixels = kVectors >= 14 ? 1 : (kVectorBytes == 64 ? 14 : 6) / kVectors;
    static constexpr int kPixels = Config::warp_m < kMostPixels ? Config::warp_m : kMostPixels;
    static constexpr int kTaps = Config::ct_stride[2] > 0 ? Config::ct_filter[2] : 0, kStep = Config::ct_stride[2];
    // A multiply-add takes four clocks to finish: that many sums must be under way.
    static constexpr int chains(int taps) { return taps * kVectors >= 4 ? 1 : taps * kVectors >= 2 ? 2 : 4; }

    // Taps of several rows share what is read of dy, if their sums fit the registers.
    static constexpr bool kTakesRows =
        whole && kTaps == kMostRows && Config::ct_filter[1] == kMostRows && kVectors <= 2;
    static constexpr int pixels_for(int rows) { return rows > 1 && kPixels * kVectors > 8 ? 8 / kVectors : kPixels; }

    template <int taps, int rows>
    struct Sums {
        F v[rows][chains(taps * rows)][taps][kVectors];
    };

    static TILEWISE_INLINE U read_y(const Line& line, Index pixel, int v, const Lanes& lanes) {
        const auto* p = line.dy + pixel * line.y_stride + v * kLanes;
        using Raw = typename UnitsY::Raw;
        return UnitsY::units(whole ? load<Raw>(p) : load_first<Raw>(p, lanes.valid * kUnitBytes<UnitsY>));
    }
    static TILEWISE_INLINE U read_x(const StorageX* p, int v, const Lanes* lanes) {
        const Index offset = whole && !spread ? Index(v * kLanes) : lanes[v].first - lanes[0].first;
        return read_lanes<UnitsX, whole, spread>(p + offset, lanes[v]);
    }

    // `pixels` positions from j on, `taps` neighbouring taps from `tap` on. With step 0 any step and shift will do.
    template <int pixels, int taps, int step, bool inside, int rows>
    static TILEWISE_INLINE void add(Sums<taps, rows>& sums, const Line& line, Index j, Index tap, const Lanes* lanes) {
        const WalkDim& walk_x = line.walk;
        const auto size = static_cast<unsigned long long>(walk_x.in_size);
        const Index at = j * walk_x.in_step + walk_x.in_first + tap * walk_x.tap_shift;
        U dy[pixels][kVectors];
        TILEWISE_UNROLL
        for (int i = 0; i < pixels * kVectors; ++i) {
            dy[i / kVectors][i % kVectors] = read_y(line, j + i / kVectors, i % kVectors, lanes[i % kVectors]);
            hold(dy[i / kVectors][i % kVectors]);
        }
        TILEWISE_UNROLL
        for (int row = 0; row < rows; ++row) {
            add_row<pixels, taps, step, inside>(sums.v[row], line, line.x[row], dy, at, size, lanes);
        }
    }
    template <int pixels, int taps, int step, bool inside, int count>
    static TILEWISE_INLINE void add_row(F (&sums)[count][taps][kVectors], const Line& line, const StorageX* x_line,
                                        const U (&dy)[pixels][kVectors], Index at, unsigned long long size,
                                        const Lanes* lanes) {
        const WalkDim& walk_x = line.walk;
        const StorageX* p = x_line + at * line.x_stride;
        constexpr int kReads = step == 0 ? pixels * taps : (pixels - 1) * step + taps;
        TILEWISE_UNROLL
        for (int r = 0; r < kReads; ++r) {
            const StorageX* from = p;
            Index pixel_x = at + r;
            if constexpr (step == 0) {
                pixel_x = at + r / taps * walk_x.in_step + r % taps * walk_x.tap_shift;
                from = x_line + pixel_x * line.x_stride;
            } else {
                walk(p, line.x_stride);
                if (taps < step && r % step >= taps) continue;
            }
            if (!inside && static_cast<unsigned long long>(pixel_x) >= size) continue;
            TILEWISE_UNROLL
            for (int v = 0; v < kVectors; ++v) {
                U x = read_x(from, v, lanes);
                if (step != 0 && taps > 1) hold(x);
                TILEWISE_UNROLL
                for (int t = 0; t < taps; ++t) {
                    const int i = step == 0 ? r / taps : (r - t) / (step == 0 ? 1 : step);
                    if (step == 0 ? t != r % taps : r < t || (r - t) % (step == 0 ? 1 : step) != 0 || i >= pixels) {
                        continue;
                    }
                    F& sum = sums[i % count][t][v];
                    sum = fma(as_float(x), as_float(dy[i][v]), sum);
                }
            }
        }
    }

    // All positions of the line for taps from `tap` on; sums are [row][tap][kWidth], row_stride and `stride` apart.
    template <int taps, int step, int rows>
    static TILEWISE_NOINLINE void run_taps(const Line& given, Index tap, float* to, Index stride, Index row_stride,
                                           const Lanes* given_lanes) {
        constexpr int kBlock = pixels_for(rows), kSums = rows * taps * kVectors, kRow = taps * kVectors;
        const Line line = given;
        Lanes lanes[kVectors];
        TILEWISE_UNROLL
        for (int v = 0; v < kVectors; ++v) lanes[v] = given_lanes[v];
        const auto place = [&](int i) {
            return to + i / kRow * row_stride + i % kRow / kVectors * stride + i % kVectors * kLanes;
        };
        Sums<taps, rows> sums = {};
        TILEWISE_UNROLL
        for (int i = 0; i < kSums; ++i) {
            sums.v[i / kRow][0][i % kRow / kVectors][i % kVectors] = load<F>(place(i));
        }
        const WalkDim& x = line.walk;
        Index j = 0;
        for (; x.count - j >= kBlock && whole && step != 0; j += kBlock) {
            const Index at = j * x.in_step + x.in_first + tap * x.tap_shift;
            if (at >= 0 && at + (kBlock - 1) * step + taps <= x.in_size) {
                add<kBlock, taps, step, true, rows>(sums, line, j, tap, lanes);
            } else {
                add<kBlock, taps, step, false, rows>(sums, line, j, tap, lanes);
            }
        }
        for (; j < x.count; ++j) add<1, taps, step, false, rows>(sums, line, j, tap, lanes);
        TILEWISE_UNROLL
        for (int i = 0; i < kSums; ++i) {
            F total = sums.v[i / kRow][0][i % kRow / kVectors][i % kVectors];
            for (int c = 1; c < chains(taps * rows); ++c)
                total += sums.v[i / kRow][c][i % kRow / kVectors][i % kVectors];
            store(place(i), total);
        }
    }

    // One row of taps.
    static TILEWISE_INLINE void run(const Line& line, float* sums, Index stride, const Lanes* lanes) {
        const WalkDim& x = line.walk;
        if constexpr (kTaps > 0 && whole) {
            if (x.tap_shift == 1 && x.in_step == kStep && x.taps == kTaps) {
                return run_taps<kTaps, kStep, 1>(line, 0, sums, stride, 0, lanes);
            }
        }
        Index tap = 0;
        if constexpr (whole && kTaps == 0) {
            const bool next = x.tap_shift == 1 && x.in_step == 1;
            for (; next && x.taps - tap >= 3; tap += 3) {
                run_taps<3, 1, 1>(line, tap, sums + tap * stride, stride, 0, lanes);
            }
        }
        for (; x.taps - tap >= 3; tap += 3) run_taps<3, 0, 1>(line, tap, sums + tap * stride, stride, 0, lanes);
        for (; tap < x.taps; ++tap) run_taps<1, 0, 1>(line, tap, sums + tap * stride, stride, 0, lanes);
    }
};

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
    TILEWISE_INLINE bool is_staged() const { return conv.x.channel_stride != 1 || conv.y.channel_stride != 1; }

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
        if (!straight) out.finish(out.at(channel, 0), turned, row, count, filter_size);
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
            out.finish(out.at(0, j), total, kReduceCols, 1, count);
        }
    }
    TILEWISE_OUTER static Index scratch_bytes(const KernelArgs& args) {
        DirectWeight task(args);
        return task.carve(nullptr);
    }
};

}  // namespace tilewise::cpu
