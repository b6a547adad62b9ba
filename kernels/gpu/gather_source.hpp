// SPDX-License-Identifier: MIT
// What a convolution's product reads where it is no plain matrix. A source has two sides: one for positions along the extent
// of the operand (m or n), one for positions along k; a side is worked out once and serves every access that it is part of.
// Together they give an address, or say that there is nothing (padding, and what is beyond the end).
//   Patches   an activation through the taps of the filter: one side is a pixel of the output (a row), the other a tap and a
//             channel. Whichever lies along k, so that forward, backward data (one residue class) and backward weight share it.
//   Weights   of backward data: rows of k are (tap, output channel), columns are input channels.
//   Filters   weights of the forward direction: rows of k are (tap, input channel).
// Sources may count more channels than there are (common/channel_chunks.hpp); `left` says how many bytes of a chunk exist.
#pragma once
#include "../common/conv_walk.hpp"
#include "divisor.hpp"
#include "inner_chunks.hpp"

namespace tilewise::gpu {

template <bool first, class A, class B>
struct Either {
    using type = A;
};
template <class A, class B>
struct Either<false, A, B> {
    using type = B;
};

// How far a kernel counts. In 32 bits pixels, taps and channels are fewer than 2^31, and pixels and taps at most 2^30 away from each
// other (rule fit_index_range); wide kernels (split_image) have no such limits.
template <bool wide>
struct Counting {
    using Count = u32;
    using Place = int;
    using By = Divisor;
    static constexpr Place kFar = 1 << 30;  // outside of everything, also after a shift
};
template <>
struct Counting<true> {
    using Count = u64;
    using Place = Index;
    using By = WideDivisor;
    static constexpr Place kFar = Index(1) << 60;
};

// The taps of a walk, in the order of their numbers in the filter. `taps` is how many there are in each dimension, where that is
// known when compiled; 0 otherwise.
template <int ndim, int taps = 0, bool wide = false>
struct TapWalk {
    using Count = typename Counting<wide>::Count;
    static constexpr int kFirst = kMaxKernelDims - ndim;  // of the dimensions that there are
    typename Counting<wide>::By channels, inner, last;    // channels; taps of the last two dimensions; of the last

    TILEWISE_DEVICE TapWalk(const Walk& walk, Index channel_count)
        : channels(Count(channel_count)),
          inner(Count(at_least_one(walk.dim[1].taps * walk.dim[2].taps))),
          last(Count(at_least_one(walk.dim[2].taps))) {}
    // A residue class may have no taps at all; then nothing is looked up.
    static TILEWISE_DEVICE Index at_least_one(Index count) { return count < 1 ? 1 : count; }

    // Of number `index` of (tap, channel): the tap's place in each dimension; returns the channel.
    TILEWISE_DEVICE Count locate(Count index, Count (&tap)[kMaxKernelDims]) const {
        Count at = index;
        Count rest = channels.divide(at);
        tap[0] = tap[1] = 0;
        if constexpr (taps > 0) {
            tap[0] = rest / (taps * taps), tap[1] = rest / taps % taps, tap[2] = rest % taps;
            return at;
        }
        if constexpr (ndim == 3) tap[0] = inner.divide(rest);
        if constexpr (ndim >= 2) tap[1] = last.divide(rest);
        tap[2] = rest;
        return at;
    }
};

// The positions of a walk, image after image.
template <int ndim, bool wide = false>
struct PositionWalk {
    using Count = typename Counting<wide>::Count;
    typename Counting<wide>::By image, plane, line;

    explicit TILEWISE_DEVICE PositionWalk(const Walk& walk)
        : image(Count(walk.positions())),
          plane(Count(walk.dim[1].count * walk.dim[2].count)),
          line(Count(walk.dim[2].count)) {}
    // Of row `index`: its position in each dimension; returns the image.
    TILEWISE_DEVICE Count locate(Count index, Count (&position)[kMaxKernelDims]) const {
        Count rest = index;
        const Count in_image = image.divide(rest);
        position[0] = position[1] = 0;
        if constexpr (ndim == 3) position[0] = plane.divide(rest);
        if constexpr (ndim >= 2) position[1] = line.divide(rest);
        position[2] = rest;
        return in_image;
    }
};

// Bytes of a chunk whose first element is number `at` of `count`.
template <class T, class Count>
TILEWISE_DEVICE int bytes_left(Count at, Count count) {
    constexpr Count kElements = kChunkBytes / T::bytes;
    if (at >= count) return 0;
    return int(count - at < kElements ? count - at : kElements) * T::bytes;
}

template <class T, int ndim, bool pixels_along_k, int fixed_taps = 0, bool wide = false, bool unaligned = false>
struct Patches {
    static constexpr bool kUnaligned = unaligned;
    using Count = typename Counting<wide>::Count;
    using Place = typename Counting<wide>::Place;
    static constexpr int kFirst = kMaxKernelDims - ndim;
    static constexpr Place kFar = Counting<wide>::kFar;
    struct Pixel {
        const char* at;     // of tap 0, channel 0; may be outside
        Place place[ndim];  // of tap 0
    };
    struct Tap {
        Index offset;  // in bytes, of the tap and the channel
        Place shift[ndim];
        int left;  // bytes of the tap's channels from there on
    };
    using Outer = typename Either<pixels_along_k, Tap, Pixel>::type;  // along the extent
    using Inner = typename Either<pixels_along_k, Pixel, Tap>::type;  // along k

    const char* data;  // of the group
    Index image_bytes, channel_bytes;
    Index dim_bytes[ndim];  // from pixel to pixel
    Place size[ndim], step[ndim], first[ndim], tap_shift[ndim];
    Count rows, columns;       // pixels; taps x channels
    Count channels;            // that exist
    InnerChunks inner_chunks;  // of the whole tensor
    TapWalk<ndim, fixed_taps, wide> taps;
    PositionWalk<ndim, wide> positions;

    TILEWISE_DEVICE Patches(const void* group, const KernelActivation& shape, const Walk& walk, Index images,
                            Index existing, Index counted, const InnerChunks& chunks)
        : data(static_cast<const char*>(group)),
          image_bytes(shape.image_stride * T::bytes),
          channel_bytes(shape.channel_stride * T::bytes),
          rows(Count(images * walk.positions())),
          columns(Count(walk.taps() * counted)),
          channels(Count(existing)),
          inner_chunks(chunks),
          taps(walk, counted),
          positions(walk) {
        Index bytes = shape.pixel_stride * T::bytes;
        TILEWISE_UNROLL
        for (int d = ndim - 1; d >= 0; --d) {
            const WalkDim& dim = walk.dim[kFirst + d];
            dim_bytes[d] = bytes;
            bytes *= dim.in_size;
            size[d] = Place(dim.in_size), step[d] = Place(dim.in_step);
            first[d] = Place(dim.in_first), tap_shift[d] = Place(dim.tap_shift);
        }
    }

    // Bytes of some positions, as far as 64 bits go: what is outside is never read, so where it would be does not matter.
    static TILEWISE_DEVICE Index bytes_of(Place places, Index each) { return Index(u64(places) * u64(each)); }
    static TILEWISE_DEVICE const char* moved(const char* at, Index bytes) {
        if constexpr (wide) return reinterpret_cast<const char*>(reinterpret_cast<u64>(at) + u64(bytes));
        return at + bytes;
    }

    TILEWISE_DEVICE Pixel pixel(Count row) const {
        Pixel p;
        Count position[kMaxKernelDims];
        p.at = data + positions.locate(row, position) * image_bytes;
        TILEWISE_UNROLL
        for (int d = 0; d < ndim; ++d) {
            p.place[d] = Place(position[kFirst + d]) * step[d] + first[d];
            p.at = moved(p.at, bytes_of(p.place[d], dim_bytes[d]));
        }
        if (row >= rows) p.place[0] = -kFar;
        return p;
    }
    TILEWISE_DEVICE Tap tap(Count index) const {
        Tap t;
        Count at[kMaxKernelDims];
        const Count channel = taps.locate(index, at);
        t.offset = Index(channel) * channel_bytes;
        t.left = bytes_left<T>(channel, channels);
        TILEWISE_UNROLL
        for (int d = 0; d < ndim; ++d) {
            t.shift[d] = Place(at[kFirst + d]) * tap_shift[d];
            t.offset = Index(u64(t.offset) + u64(bytes_of(t.shift[d], dim_bytes[d])));
        }
        if (index >= columns) t.shift[0] = -kFar;
        return t;
    }
    TILEWISE_DEVICE Outer outer(Count index) const {
        if constexpr (pixels_along_k) {
            return tap(index);
        } else {
            return pixel(index);
        }
    }
    TILEWISE_DEVICE Inner inner(Count index) const {
        if constexpr (pixels_along_k) {
            return pixel(index);
        } else {
            return tap(index);
        }
    }
    static TILEWISE_DEVICE const char* address(const Pixel& p, const Tap& t) { return moved(p.at, t.offset); }
    static TILEWISE_DEVICE const char* address(const Tap& t, const Pixel& p) { return moved(p.at, t.offset); }
    TILEWISE_DEVICE bool is_inside(const Pixel& p, const Tap& t) const {
        bool inside = true;
        TILEWISE_UNROLL
        for (int d = 0; d < ndim; ++d) inside = inside && Count(p.place[d] + t.shift[d]) < Count(size[d]);
        return inside;
    }
    TILEWISE_DEVICE bool is_inside(const Tap& t, const Pixel& p) const { return is_inside(p, t); }
    // Bytes of a chunk that exist.
    TILEWISE_DEVICE int valid(const Pixel& p, const Tap& t) const { return is_inside(p, t) ? t.left : 0; }
    TILEWISE_DEVICE int valid(const Tap& t, const Pixel& p) const { return valid(p, t); }
};

// [output channel][tap][input channel], read by the taps of a walk.
template <class T, int ndim, bool wide = false, bool unaligned = false>
struct Weights {
    static constexpr bool kUnaligned = unaligned;
    using Count = typename Counting<wide>::Count;
    struct Outer {
        Index offset;
        int left;
    };
    struct Inner {
        const char* at;
        bool exists;
    };

    const char* data;  // of the group
    Index filter_bytes, tap_bytes;
    Count filters, rows, columns;
    InnerChunks inner_chunks;
    TapWalk<ndim, 0, wide> taps;
    Count tap_first[kMaxKernelDims], tap_step[kMaxKernelDims], size[kMaxKernelDims];

    TILEWISE_DEVICE Weights(const void* group, const KernelConv& conv, const Walk& walk, Index counted,
                            const InnerChunks& chunks)
        : data(static_cast<const char*>(group)),
          filter_bytes(weights_per_filter(conv) * T::bytes),
          tap_bytes(conv.c * T::bytes),
          filters(Count(conv.k)),
          rows(Count(walk.taps() * counted)),
          columns(Count(conv.c)),
          inner_chunks(chunks),
          taps(walk, counted) {
        TILEWISE_UNROLL
        for (int d = 0; d < kMaxKernelDims; ++d) {
            tap_first[d] = Count(walk.dim[d].tap_first), tap_step[d] = Count(walk.dim[d].tap_step);
            size[d] = Count(conv.filter[d]);
        }
    }
    TILEWISE_DEVICE Outer outer(Count column) const {
        return {Index(column) * T::bytes, bytes_left<T>(column, columns)};
    }
    TILEWISE_DEVICE Inner inner(Count index) const {
        Count at[kMaxKernelDims];
        const Count channel = taps.locate(index, at);
        Count tap = 0;
        TILEWISE_UNROLL
        for (int d = kMaxKernelDims - ndim; d < kMaxKernelDims; ++d) {
            tap = tap * size[d] + tap_first[d] + at[d] * tap_step[d];
        }
        return {data + channel * filter_bytes + tap * tap_bytes, index < rows && channel < filters};
    }
    static TILEWISE_DEVICE const char* address(const Outer& o, const Inner& i) { return i.at + o.offset; }
    static TILEWISE_DEVICE int valid(const Outer& o, const Inner& i) { return i.exists ? o.left : 0; }
    static TILEWISE_DEVICE bool is_inside(const Outer& o, const Inner& i) { return valid(o, i) > 0; }
};

// [output channel][tap][input channel] as the forward direction reads it.
template <class T, bool wide = false>
struct Filters {
    static constexpr bool kUnaligned = true;
    using Count = typename Counting<wide>::Count;
    struct Outer {
        const char* at;
        bool exists;
    };
    struct Inner {
        Index offset;
        int left;
    };

    const char* data;  // of the group
    Index filter_bytes;
    Count filters, rows, channels;
    InnerChunks inner_chunks;
    typename Counting<wide>::By by_tap;

    TILEWISE_DEVICE Filters(const void* group, const KernelConv& conv, Index taps, Index counted,
                            const InnerChunks& chunks)
        : data(static_cast<const char*>(group)),
          filter_bytes(weights_per_filter(conv) * T::bytes),
          filters(Count(conv.k)),
          rows(Count(taps * counted)),
          channels(Count(conv.c)),
          inner_chunks(chunks),
          by_tap(Count(counted)) {}
    TILEWISE_DEVICE Outer outer(Count filter) const { return {data + filter * filter_bytes, filter < filters}; }
    TILEWISE_DEVICE Inner inner(Count index) const {
        Count channel = index;
        const Count tap = by_tap.divide(channel);
        const int left = index < rows ? bytes_left<T>(channel, channels) : 0;
        return {Index(tap * channels + channel) * T::bytes, left};
    }
    static TILEWISE_DEVICE const char* address(const Outer& o, const Inner& i) { return o.at + i.offset; }
    static TILEWISE_DEVICE int valid(const Outer& o, const Inner& i) { return o.exists ? i.left : 0; }
};

}  // namespace tilewise::gpu
