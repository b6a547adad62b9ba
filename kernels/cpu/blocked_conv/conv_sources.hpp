// SPDX-License-Identifier: MIT
// The operands of a convolution's product, as sources for the loop nest (pack.hpp says what a source is):
//   Patches        what each position of a walk meets: (tap, channel) of an activation, zeros outside. Rows of A in forward
//                  and backward data, [position][tap][channel]; columns of B in backward weight.
//   TurnedWeights  columns of B in backward data: input channels by (tap of the class, output channel).
//   PixelRows      where the rows of C, one for each position, are in an activation.
// No im2col matrix comes to be: a block of rows x tile_k is gathered into scratch memory when the nest gets to it, in runs
// that are contiguous in memory (a channel vector; a whole row of taps where these are neighbours), and read from there.
// Each gathered element is written once and used for all columns of the block.
#pragma once
#include "../../common/conv_walk.hpp"
#include "../pack.hpp"
#include "../primitives.hpp"

namespace tilewise::cpu::blocked_conv {

// Copies exactly `count` elements.
template <class S>
TILEWISE_INLINE void copy_run(S* to, const S* from, Index count) {
    constexpr Index kWidth = kVectorBytes / sizeof(S);
    using V = Vec<S, kWidth>;
    Index i = 0;
    for (; count - i >= kWidth; i += kWidth) store(to + i, load<V>(from + i));
    if (i == count) return;
    if constexpr (kVectorBytes == 64) {
        const Index bytes = (count - i) * Index(sizeof(S));
        store_first(to + i, load_first<V>(from + i, bytes), bytes);
    } else {
        for (; i < count; ++i) to[i] = from[i];
    }
}
template <class S>
TILEWISE_INLINE void clear_run(S* to, Index count) {
    for (Index i = 0; i < count; ++i) to[i] = S{};
}

// Rows of gathered elements begin on cache lines, and not a power of two apart: that would put them into the same sets.
template <class S>
constexpr Index gathered_stride(Index count) {
    constexpr Index kLine = kCacheLine / sizeof(S);
    return (count + kLine - 1) / kLine * kLine + kLine;
}

// A position as a cursor.
struct Position {
    Index image, j[kMaxKernelDims];

    static TILEWISE_INLINE Position at(const Walk& walk, Index index) {
        Position p;
        for (int d = kMaxKernelDims - 1; d >= 0; --d) {
            p.j[d] = index % walk.dim[d].count;
            index /= walk.dim[d].count;
        }
        p.image = index;
        return p;
    }
    TILEWISE_INLINE void next(const Walk& walk) {
        for (int d = kMaxKernelDims - 1; d >= 0; --d) {
            if (++j[d] < walk.dim[d].count) return;
            j[d] = 0;
        }
        ++image;
    }
};

// lanes_are_positions: lanes are positions and k is (tap, channel); otherwise the other way round. inner_taps is the
// number of taps along the innermost dimension where that is known when compiled, else 0.
template <class T, bool lanes_are_positions, int inner_taps = 0>
struct Patches {
    using Element = T;
    using Storage = typename T::Storage;
    static constexpr bool gathers = true;
    static constexpr Index store_stride(Index count) { return gathered_stride<Storage>(count); }

    const Storage* p;  // of the group
    const Storage* limit;
    KernelActivation shape;
    const Walk* walk;
    Index channels;
    Index first, first_tap;  // the position and the (tap, channel) that are number 0 here
    bool direct;             // positions follow each other as in memory, with one tap: no need to gather

    static TILEWISE_INLINE Patches make(const void* data, Index group, const KernelActivation& shape, Index channels,
                                        const Walk& walk, Index images) {
        const auto* all = static_cast<const Storage*>(data);
        Patches s = {all + group * shape.group_stride,
                     all + images * shape.image_stride,
                     shape,
                     &walk,
                     channels,
                     0,
                     0,
                     walk.taps() == 1 && shape.is_channels_last()};
        for (const WalkDim& d : walk.dim) {
            s.direct = s.direct && d.in_step == 1 && d.in_first == 0 && d.count == d.in_size;
        }
        return s;
    }
    TILEWISE_INLINE bool is_direct() const { return direct; }
    TILEWISE_INLINE Patches from(Index position, Index tap_channel) const {
        Patches s = *this;
        s.first += position, s.first_tap += tap_channel;
        return s;
    }

    TILEWISE_INLINE Operand<T> block(Index lane, Index lanes, Index k, Index count, Storage* store) const {
        const Index position = first + (lanes_are_positions ? lane : k);
        const Index tap = first_tap + (lanes_are_positions ? k : lane);
        const Index positions = lanes_are_positions ? lanes : count, taps = lanes_are_positions ? count : lanes;
        const Index stride = direct ? shape.pixel_stride : store_stride(taps);
        if (!direct) gather(position, positions, tap, taps, store, stride, lanes_are_positions ? kUnit : 1);
        const Storage* start = direct ? p + position * shape.pixel_stride + tap : store;
        const Storage* end = direct ? limit : store + positions * stride;
        return lanes_are_positions ? Operand<T>{start, stride, 1, end} : Operand<T>{start, 1, stride, end};
    }
    // Straight to [k][lane], rows `stride` apart.
    TILEWISE_INLINE void fill(Index lane, Index lanes, Index k, Index count, Storage* to, Index stride) const {
        static_assert(!lanes_are_positions, "rows are gathered in blocks");
        gather(first + k, count, first_tap + lane, lanes, to, stride, 1);
    }
    // Whole rows of (tap, channel), for a matrix that is kept.
    TILEWISE_INLINE void write(Index position, Index positions, Index count, Storage* to, Index stride) const {
        gather(position, positions, 0, count, to, stride, 1);
    }

private:
    static constexpr Index kUnit = 4 / sizeof(Storage);  // k in one unit

    // to[position][count elements from `begin` on]; rows end in zeros up to a multiple of `whole`.
    TILEWISE_NOINLINE void gather(Index position, Index positions, Index begin, Index count, Storage* to, Index stride,
                                  Index whole) const {
        const auto& [d0, d1, d2] = walk->dim;
        const Index line = (inner_taps > 0 ? inner_taps : d2.taps) * channels;  // what the innermost taps take
        const Index line_first = line > 0 ? begin / line : 0;
        const Index tap0 = d1.taps > 0 ? line_first / d1.taps : 0, tap1 = d1.taps > 0 ? line_first % d1.taps : 0;
        const bool dense = d2.tap_shift * shape.pixel_stride == channels && shape.is_channels_last();
        Position at = Position::at(*walk, position);
        for (Index q = 0; q < positions; ++q, to += stride, at.next(*walk)) {
            const TapRange inner = d2.inside(at.j[2]);
            const Storage* image = p + at.image * shape.image_stride;
            const Index x = at.j[2] * d2.in_step + d2.in_first;
            Index i0 = tap0, i1 = tap1;
            for (Index k = line_first * line - begin; k < count; k += line) {
                const Index z = at.j[0] * d0.in_step + d0.in_first + i0 * d0.tap_shift;
                const Index y = at.j[1] * d1.in_step + d1.in_first + i1 * d1.tap_shift;
                const bool inside = z >= 0 && z < d0.in_size && y >= 0 && y < d1.in_size;
                const Storage* row = image + ((z * d1.in_size + y) * d2.in_size + x) * shape.pixel_stride;
                put_line(to, k, count, row, inside ? inner : TapRange{0, 0}, line, dense);
                if (++i1 == d1.taps) i1 = 0, ++i0;
            }
            clear_run(to + count, round_up(count, whole) - count);
        }
    }

    // The taps of one innermost line to elements [k, k + line) of the row, of which [0, count) are wanted.
    TILEWISE_INLINE void put_line(Storage* to, Index k, Index count, const Storage* row, TapRange inner, Index line,
                                  bool dense) const {
        const Index copy_begin = k + inner.begin * channels, copy_end = k + inner.end * channels;
        clear_clipped(to, k, copy_begin, count);
        clear_clipped(to, copy_end, k + line, count);
        const Index shift = walk->dim[2].tap_shift * shape.pixel_stride;
        const Storage* tap = row + inner.begin * shift;
        if (dense) return copy_clipped(to, copy_begin, copy_end, count, tap, 1);
        for (Index at = copy_begin; at < copy_end; at += channels, tap += shift) {
            copy_clipped(to, at, at + channels, count, tap, shape.channel_stride);
        }
    }
    static TILEWISE_INLINE void clear_clipped(Storage* to, Index begin, Index end, Index count) {
        begin = begin < 0 ? 0 : begin;
        end = least(end, count);
        if (begin < end) clear_run(to + begin, end - begin);
    }
    static TILEWISE_INLINE void copy_clipped(Storage* to, Index begin, Index end, Index count, const Storage* from,
                                             Index stride) {
        const Index skip = begin < 0 ? -begin : 0;
        begin += skip;
        end = least(end, count);
        if (begin >= end) return;
        from += skip * stride;
        if (stride == 1) return copy_run(to + begin, from, end - begin);
        for (Index i = begin; i < end; ++i, from += stride) to[i] = *from;
    }
};

// Lanes are input channels, k is (tap of the walk, output channel); weights are [output channel][tap][input channel].
template <class T>
struct TurnedWeights {
    using Element = T;
    using Storage = typename T::Storage;
    static constexpr bool gathers = true;
    static constexpr Index store_stride(Index count) { return gathered_stride<Storage>(count); }

    const Storage* p;  // of the group
    const Storage* limit;
    const KernelConv* conv;
    const Walk* walk;
    Index first;  // the input channel that is number 0 here

    // A single tap needs no gathering.
    TILEWISE_INLINE bool is_direct() const { return walk->taps() == 1; }
    TILEWISE_INLINE const Storage* tap(Index i) const {
        const auto& [d0, d1, d2] = walk->dim;
        const Index t2 = d2.tap_first + i % d2.taps * d2.tap_step;
        i /= d2.taps;
        const Index t1 = d1.tap_first + i % d1.taps * d1.tap_step, t0 = d0.tap_first + i / d1.taps * d0.tap_step;
        return p + ((t0 * conv->filter[1] + t1) * conv->filter[2] + t2) * conv->c + first;
    }
    TILEWISE_INLINE Operand<T> block(Index lane, Index lanes, Index k, Index count, Storage* store) const {
        if (is_direct()) return Operand<T>{tap(0), 1, weights_per_filter(*conv), limit}.at(lane, k);
        const Index stride = store_stride(lanes);
        fill(lane, lanes, k, count, store, stride);
        return {store, 1, stride, store + count * stride};
    }
    TILEWISE_NOINLINE void fill(Index lane, Index lanes, Index k, Index count, Storage* to, Index stride) const {
        const Index filter = weights_per_filter(*conv);
        for (Index done = 0; done < count;) {
            const Index i = (k + done) / conv->k, f = (k + done) % conv->k, run = least(conv->k - f, count - done);
            const Storage* from = tap(i) + f * filter + lane;
            for (Index q = 0; q < run; ++q, to += stride, from += filter) copy_run(to, from, lanes);
            done += run;
        }
    }
};

struct PixelRows {
    const Walk* walk;
    Index image_stride, pixel_stride;
    Index first;  // the position that is row 0
    Index run;    // positions that follow each other evenly
    bool even;    // all do

    static TILEWISE_INLINE PixelRows make(const Walk& walk, const KernelActivation& shape, Index images, Index first) {
        const bool dense = walk.dim[0].out_step == 1 && walk.dim[1].out_step == 1 && walk.dim[2].out_step == 1;
        const bool even = dense && (images == 1 || shape.image_stride == walk.positions() * shape.pixel_stride);
        return {&walk, shape.image_stride, shape.pixel_stride, first, dense ? walk.positions() : walk.dim[2].count,
                even};
    }
    // Rows that just follow each other, as in a workspace.
    static TILEWISE_INLINE PixelRows in_order(const Walk& walk, Index stride, Index first) {
        return {&walk, 0, stride, first, 1, true};
    }
    TILEWISE_INLINE Index run_from(Index row) const { return even ? Index(1) << 62 : run - (first + row) % run; }
    TILEWISE_INLINE Index offset(Index row) const {
        if (even) return (first + row) * pixel_stride;
        const Position at = Position::at(*walk, first + row);
        return at.image * image_stride + walk->out_pixel(at.j[0], at.j[1], at.j[2]) * pixel_stride;
    }
};

}  // namespace tilewise::cpu::blocked_conv
