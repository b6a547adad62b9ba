// SPDX-License-Identifier: MIT
// The heart of the direct convolution kernels (forward and backward data): `pixels` neighbouring positions of a line times
// `vectors` vectors of channels, whose sums stay in registers over all taps and all channels of a group. Taps are taken
// a few at a time: a vector of inputs that is read once serves up to `taps` outputs. With t taps at once, p pixels and a
// step of 1 between them, (p + t - 1) vectors of inputs and t of weights are read for p * t multiply-adds: arithmetic is
// the limit from t = 2 on, and with t = 1 the loads are (one for each multiply-add).
// At the ends of a line, taps that lead outside are skipped, by branches that are the same for all channels.
#pragma once
#include "../../common/conv_walk.hpp"
#include "../epilogue.hpp"
#include "../primitives.hpp"
#include "spread.hpp"

namespace tilewise::cpu::direct_conv {

// A line of inputs that meets a line of outputs, from its first pixel on, and the number of the row of taps.
// Units that take two rows at once find the other line `second` elements further on; `words` says which half counts.
template <class Storage>
struct TapRow {
    const Storage* in;
    Index number;
    Index second;
    u32 words;
};
inline constexpr u32 kBothWords = 0xffffffffu, kLowerWords = 0x55555555u;

// A block writes its sums, for the epilogue; the outputs, where nothing is to be done but to convert; or outputs after a bias
// and limits.
enum class Writes { sums, outputs, finished };

// The blocks of one line have this in common, for one residue class and one set of channels.
template <class Storage>
struct LineTask {
    const TapRow<Storage>* rows;
    Index row_count;
    const u32* weights;  // [row of taps][step][tap][lane]
    Index steps;         // units of input channels in a group
    WalkDim x;           // along the line, tap_shift >= 0
    Index pixel_stride;  // of the inputs
    Index begin, end;    // positions
    Writes writes;
    const char* bias;  // of the first channel, or null
    float low, high;
    Index out_at, out_stride;  // bytes from the piece's first pixel to position `begin`, and between positions
    Index channels;            // outputs that exist, of vectors * kLanes
    bool reads_whole;          // all lanes exist, and find their inputs within one vector
    Index last_whole;          // the last pixel at which whole vectors can be read in every row
};

// A block must look at one of these: nothing, whether a tap leads outside the line, or also how many lanes may be read and written.
enum class Check { none, edges, lanes };

// A number of taps along the line that is known when compiled (ct_taps, positions ct_step apart, or 0) makes blocks at the
// ends of a line as fast as others: the first skip_left and the last skip_right pixels that such a block would read lie
// outside.
template <class Units, class Out, int pixels, int vectors, Check check, bool spread, int ct_taps, int ct_step,
          int skip_left = 0, int skip_right = 0>
struct LineBlock {
    static_assert(check == Check::none || (skip_left == 0 && skip_right == 0));
    using Acc = typename Units::Acc;
    using Storage = typename Units::Storage;
    using Task = LineTask<Storage>;
    using V = Vec<Acc>;
    static constexpr int kWidth = vectors * kLanes;
    static constexpr bool whole = check != Check::lanes;

    struct Sums {
        V v[pixels][vectors];
    };

    static TILEWISE_INLINE Vec<u16> fetch(const Storage* p, const Lanes& lanes) {
        return whole ? load<Vec<u16>>(p) : load_first<Vec<u16>>(p, lanes.valid * Index(sizeof(u16)));
    }

    // `taps` neighbouring taps; positions `step` apart. `at` is where the first position's first tap reads.
    template <int taps, int step>
    static TILEWISE_INLINE void add(Sums& sums, const TapRow<Storage>& row, const Storage* in, const u32* weights,
                                    Index at, const Task& task, const Lanes* lanes, Index valid, Index run_time_step) {
        const Index stride = task.pixel_stride * (step == 0 ? run_time_step : 1), move = step == 0 ? run_time_step : 1;
        constexpr int kStep = step == 0 ? 1 : step, kReads = (pixels - 1) * kStep + taps;
        alignas(kCacheLine) static constexpr Storage kZeros[kWidth * Units::depth] = {};
        // Pixels that are not wanted read nothing either.
        const Index end = least(task.x.in_size, at + ((valid - 1) * kStep + taps - 1) * move + 1);
        const auto size = static_cast<unsigned long long>(end < 0 ? 0 : end);
        U w[taps][vectors];
        TILEWISE_UNROLL
        for (int t = 0; t < taps; ++t) {
            TILEWISE_UNROLL
            for (int v = 0; v < vectors; ++v) {
                w[t][v] = load<U>(weights + t * kWidth + v * kLanes);
                if (Units::rows == 2 && row.words == kLowerWords) w[t][v] &= 0xffffu;
            }
        }
        const Storage* p = in + at * task.pixel_stride;
        TILEWISE_UNROLL
        for (int r = 0; r < kReads; ++r, walk(p, stride)) {
            const Index pixel_at = at;
            if (check != Check::none) count_up(at, move);
            if (r < skip_left || r >= kReads - skip_right || (taps < kStep && r % kStep >= taps)) continue;
            const bool inside = check == Check::none || static_cast<unsigned long long>(pixel_at) < size;
            if (check == Check::lanes && !inside) continue;
            const Storage* pixel_in = check == Check::edges && !inside ? kZeros : p;
            if (check == Check::edges) walk(pixel_in, 0);
            TILEWISE_UNROLL
            for (int v = 0; v < vectors; ++v) {
                const Storage* from = pixel_in + v * kLanes;
                if (spread || !whole) {
                    from = check == Check::edges && !inside ? kZeros : p + lanes[v].first - lanes[0].first;
                    if (check == Check::edges) walk(from, 0);
                }
                U in_units;
                if constexpr (Units::rows == 1) {
                    in_units = read_lanes<Units, whole, spread>(from, lanes[v]);
                } else {
                    const Storage* second = check == Check::edges && !inside ? from : from + row.second;
                    in_units = zip_words(fetch(from, lanes[v]), fetch(second, lanes[v]), row.words);
                }
                if (taps > 1) hold(in_units);
                TILEWISE_UNROLL
                for (int t = 0; t < taps; ++t) {
                    const int pixel = (r - t) / kStep;
                    if (r < t || (r - t) % kStep != 0 || pixel >= pixels) continue;
                    sums.v[pixel][v] = Units::step(sums.v[pixel][v], in_units, w[t][v]);
                }
            }
        }
    }

    // One row of taps and one step of the reduction.
    static TILEWISE_INLINE void add_row(Sums& sums, const TapRow<Storage>& row, const Storage* in, const u32* weights,
                                        Index at, const Task& task, const Lanes* lanes, Index valid) {
        if constexpr (ct_taps > 0 && check == Check::none) {
            add<ct_taps, ct_step>(sums, row, in, weights, at, task, lanes, valid, 1);
        } else {
            add_taps(sums, row, in, weights, at, task, lanes, valid);
        }
    }
    // Any number of taps. Where the number is known, so are they, but for the ends of lines and for dilations.
    static TILEWISE_INLINE void add_taps(Sums& sums, const TapRow<Storage>& row, const Storage* in, const u32* weights,
                                         Index at, const Task& task, const Lanes* lanes, Index valid) {
        const WalkDim& x = task.x;
        Index tap = 0;
        if constexpr (ct_taps == 0 && check != Check::lanes) {
            if (x.tap_shift == 1 && x.in_step == 1) {
                for (; x.taps - tap >= 3; tap += 3) {
                    add<3, 1>(sums, row, in, weights + tap * kWidth, at + tap, task, lanes, valid, 1);
                }
                if (x.taps - tap == 2) {
                    add<2, 1>(sums, row, in, weights + tap * kWidth, at + tap, task, lanes, valid, 1);
                    tap += 2;
                }
            }
        }
        for (; tap < x.taps; ++tap) {
            add<1, 0>(sums, row, in, weights + tap * kWidth, at + tap * x.tap_shift, task, lanes, valid, x.in_step);
        }
    }

    // Positions j to j + pixels, of which the first `valid` are wanted.
    static TILEWISE_NOINLINE void run(const Task& task, const Lanes* lanes_in, Index j, Index valid, char* out) {
        Lanes lanes[vectors];  // a copy: what is written to the output cannot change it
        TILEWISE_UNROLL
        for (int v = 0; v < vectors; ++v) lanes[v] = lanes_in[v];
        Sums sums = {};
        const Index at = j * task.x.in_step + task.x.in_first;
        const Index row_words = task.x.taps * kWidth;
        for (Index r = 0; r < task.row_count; ++r) {
            const TapRow<Storage> row = task.rows[r];
            const u32* weights = task.weights + row.number * task.steps * row_words;
            for (Index s = 0; s < task.steps; ++s, weights += row_words) {
                add_row(sums, row, row.in + lanes[0].first + s * Units::depth, weights, at, task, lanes, valid);
            }
        }
        if constexpr (!Units::is_integer) {
            if (task.writes == Writes::finished) limit(sums, task);
        }
        if (task.writes == Writes::sums) {
            write<false>(sums, task, valid, out);
        } else {
            write<true>(sums, task, valid, out);
        }
    }

    static TILEWISE_INLINE void limit(Sums& sums, const Task& task) {
        const V low = splat<V>(task.low), high = splat<V>(task.high);
        TILEWISE_UNROLL
        for (int v = 0; v < vectors; ++v) {
            V bias = splat<V>(-0.0f);  // x + -0 is x for every x
            const Index channels = task.channels - v * kLanes;
            if (task.bias && channels > 0) bias = read_values<Out, V>(task.bias + v * kLanes * kBytes<Out>, channels);
            TILEWISE_UNROLL
            for (int p = 0; p < pixels; ++p) {
                sums.v[p][v] = limited(sums.v[p][v] + bias, low, high);
            }
        }
    }

    template <bool converted>
    static TILEWISE_INLINE void write(const Sums& sums, const Task& task, Index valid, char* out) {
        constexpr bool is_raw = !converted || kSame<Out, typename RawOf<Acc>::type>;
        constexpr Index kBytesEach = is_raw ? Index(sizeof(Acc)) : kBytes<Out>;
        TILEWISE_UNROLL
        for (int p = 0; p < pixels; ++p, walk(out, task.out_stride)) {
            if (check != Check::none && p >= valid) break;
            TILEWISE_UNROLL
            for (int v = 0; v < vectors; ++v) {
                char* to = out + v * kLanes * kBytesEach;
                const Index left = task.channels - v * kLanes;
                if (!whole && converted && left <= 0) break;
                const bool all = whole || !converted || left >= kLanes;
                if constexpr (is_raw) {
                    all ? store(to, sums.v[p][v]) : store_first(to, sums.v[p][v], left * kBytesEach);
                } else if constexpr (!Units::is_integer) {
                    write_values<Out>(to, sums.v[p][v], all ? Index(kLanes) : left);
                }
            }
        }
    }
};

}  // namespace tilewise::cpu::direct_conv
