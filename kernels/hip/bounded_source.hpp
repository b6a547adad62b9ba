// SPDX-License-Identifier: MIT
// What the product of a convolution reads where it is no plain matrix (../gpu/gather_source.hpp), for tiles that are loaded without a
// branch (bounded_gather.hpp). A source has two sides, one for positions along the extent (`outer`) and one along k (`inner`), and says
// from which address a tile is read (`memory`) and how far from there an access lies (`offset`): nowhere, if it is outside. Where all
// lanes of a wave have the same place along k, they have that part of the way in `common`, and each its own in `lane_offset`. An inner
// place serves kRun steps of k, which are run_bytes() apart. Of kNeighbours places those `after` the first are found from the one before.
// Places beyond the end of k are asked for, but not read.
//   PatchSource   an activation through the taps of the filter
//   WeightSource  weights of backward data: rows of k are (tap, output channel), columns are input channels
//   FilterSource  weights of the forward direction whose channels are counted in whole chunks
#pragma once
#include "straight_walk.hpp"

namespace tilewise::hip {

// How far lanes reach: by 31 bits from an address that all of them have, or anywhere (split_image). That all lanes have it the compiler
// does not always see; it would then load for one lane after another.
template <bool wide>
struct Reach {
    using Offset = u32;
    using Memory = Bounded;
    static constexpr Offset kNowhere = kOutside;

    static TILEWISE_DEVICE Memory memory(const char* base, const char*, bool exists) {
        return bounded(uniform(base), exists ? kMostOffset : 0);
    }
    template <int bytes>
    static TILEWISE_DEVICE Packet<bytes> load(const Memory& from, Offset at, Offset common = 0) {
        return load_bounded<bytes>(from, at, common);
    }
};
template <>
struct Reach<true> {
    using Offset = u64;
    struct Memory {
        const char *base, *readable;
        bool exists;
    };
    static constexpr Offset kNowhere = ~u64(0);

    static TILEWISE_DEVICE Memory memory(const char* base, const char* readable, bool exists) {
        return {base, readable, exists};
    }
    // What is nowhere is read at the tensor's beginning, and not kept.
    template <int bytes>
    static TILEWISE_DEVICE Packet<bytes> load(const Memory& from, Offset at, Offset common = 0) {
        const bool exists = from.exists && at != kNowhere;
        const u64 address = reinterpret_cast<u64>(from.base) + at + common;
        const u64 readable = exists ? address : reinterpret_cast<u64>(from.readable);
        const Packet<bytes> packet = load_global<bytes>(reinterpret_cast<const char*>(readable));
        return exists ? packet : zero_packet<bytes>();
    }
};

template <class T, int ndim, bool pixels_along_k, int fixed_taps = 0, bool wide = false, bool whole_chunks = false>
struct PatchSource {
    using Far = Reach<wide>;
    using Count = typename Counting<wide>::Count;
    using Place = typename Counting<wide>::Place;
    using Offset = typename Far::Offset;
    using Memory = typename Far::Memory;
    static constexpr Place kFar = Counting<wide>::kFar;
    static constexpr int kFirst = kMaxKernelDims - ndim, kRun = 1;
    // Fewer of pixels that take more registers each.
    static constexpr int kNeighbours = !pixels_along_k ? 1 : wide ? 16 : ndim == 1 ? 8 : 4;
    static constexpr bool kWide = wide, kWholeChunks = whole_chunks && !pixels_along_k;  // along k
    struct Pixel {
        Offset at;          // of tap 0, channel 0
        Place place[ndim];  // of tap 0
    };
    struct Tap {
        Offset at;
        Place shift[ndim];
        int left;  // bytes of the tap's channels from there on
    };
    using Outer = typename Either<pixels_along_k, Tap, Pixel>::type;
    using Inner = typename Either<pixels_along_k, Pixel, Tap>::type;

    const char* data;  // of the group
    Index image_bytes;
    Offset channel_bytes, dim_bytes[ndim];  // from pixel to pixel
    Place size[ndim], step[ndim], first[ndim], tap_shift[ndim];
    Count rows, columns;        // pixels; taps x channels
    Count channels;             // that exist
    Offset before, tap_before;  // pixels lie at most so far before their image, and taps before their pixel
    Place end[ndim];            // where a line of positions ends
    Offset step_bytes,
        turn_bytes[ndim];  // from position to position of a line, and on top of it where a dimension ends
    Taps<ndim, fixed_taps, wide> taps;
    Positions<ndim, wide> positions;

    TILEWISE_DEVICE PatchSource(const void* group, const KernelActivation& shape, const Walk& walk, Index images,
                                Index existing, Index counted)
        : data(static_cast<const char*>(group)),
          image_bytes(shape.image_stride * T::bytes),
          channel_bytes(Offset(shape.channel_stride * T::bytes)),
          rows(Count(images * walk.positions())),
          columns(Count(walk.taps() * counted)),
          channels(Count(existing)),
          before(0),
          tap_before(0),
          taps(walk, counted),
          positions(walk) {
        Offset bytes = Offset(shape.pixel_stride * T::bytes);
        TILEWISE_UNROLL
        for (int d = ndim - 1; d >= 0; --d) {
            const WalkDim& dim = walk.dim[kFirst + d];
            dim_bytes[d] = bytes;
            bytes *= Offset(dim.in_size);
            size[d] = Place(dim.in_size), step[d] = Place(dim.in_step);
            first[d] = Place(dim.in_first), tap_shift[d] = Place(dim.tap_shift);
            if (first[d] < 0) before += Offset(-first[d]) * dim_bytes[d];
            if (tap_shift[d] < 0) tap_before += Offset(dim.taps - 1) * Offset(-tap_shift[d]) * dim_bytes[d];
        }
        TILEWISE_UNROLL
        for (int d = 0; d < ndim; ++d) {
            const Offset count = Offset(walk.dim[kFirst + d].count) * Offset(step[d]);
            const Offset next = d == 0 ? Offset(image_bytes) : Offset(step[d - 1]) * dim_bytes[d - 1];
            end[d] = first[d] + Place(count);
            turn_bytes[d] = next - count * dim_bytes[d];
        }
        step_bytes = Offset(step[ndim - 1]) * dim_bytes[ndim - 1];
    }

    // Offsets count from the image of the tile's first pixel.
    TILEWISE_DEVICE Count first_image(Count first_row) const {
        if constexpr (wide) {
            return 0;
        } else {
            return positions.image.quotient(first_row);
        }
    }
    TILEWISE_DEVICE Pixel pixel(Count first_row, Count row) const {
        Pixel p;
        Count position[ndim];
        const Count image = positions.locate(row, position) - first_image(first_row);
        p.at = Offset(image) * Offset(image_bytes) + before;
        TILEWISE_UNROLL
        for (int d = 0; d < ndim; ++d) {
            p.place[d] = Place(position[d]) * step[d] + first[d];
            p.at += Offset(p.place[d]) * dim_bytes[d];
        }
        return p;
    }
    TILEWISE_DEVICE Tap tap(Count index) const {
        Tap t;
        Count at[ndim];
        const Count channel = taps.locate(index, at);
        t.at = Offset(channel) * channel_bytes + tap_before;
        t.left = bytes_left<T>(channel, channels);
        TILEWISE_UNROLL
        for (int d = 0; d < ndim; ++d) {
            t.shift[d] = Place(at[d]) * tap_shift[d];
            t.at += Offset(t.shift[d]) * dim_bytes[d];
        }
        return t;
    }
    TILEWISE_DEVICE Outer outer(Count first_row, Count index) const {
        if constexpr (pixels_along_k) {
            Tap t = tap(index);
            if (index >= columns || (whole_chunks && t.left == 0)) t.shift[0] = -kFar;
            return t;
        } else {
            Pixel p = pixel(first_row, index);
            if (index >= rows) p.place[0] = -kFar;
            return p;
        }
    }
    TILEWISE_DEVICE Inner inner(Count first_k, Count index) const {
        if constexpr (pixels_along_k) {
            return pixel(first_k, index);
        } else {
            return tap(index);
        }
    }
    // The pixel of the position after it, without a division.
    TILEWISE_DEVICE Pixel after(Pixel p) const {
        bool ends = true;  // so do all dimensions further in
        p.at += step_bytes;
        TILEWISE_UNROLL
        for (int d = ndim - 1; d >= 0; --d) {
            const Place next = p.place[d] + (ends ? step[d] : 0);
            ends = ends & (next == end[d]);
            p.place[d] = ends ? first[d] : next;
            p.at += ends ? turn_bytes[d] : 0;
        }
        return p;
    }
    static TILEWISE_DEVICE bool has(const Inner&, int) { return true; }
    static TILEWISE_DEVICE Offset run_bytes() { return 0; }
    static TILEWISE_DEVICE int left(const Inner& inner) { return inner.left; }

    TILEWISE_DEVICE Memory memory(Count first_row, Count first_k, bool exists) const {
        const Index image = Index(first_image(pixels_along_k ? first_k : first_row));
        const u64 base = reinterpret_cast<u64>(data) + u64(image * image_bytes) - before - tap_before;
        return Far::memory(reinterpret_cast<const char*>(base), data, exists);
    }
    TILEWISE_DEVICE bool is_inside(const Outer& o, const Inner& i) const {
        bool inside = true;
        TILEWISE_UNROLL
        for (int d = 0; d < ndim; ++d) {
            Place at;
            if constexpr (pixels_along_k) {
                at = o.shift[d] + i.place[d];
            } else {
                at = o.place[d] + i.shift[d];
            }
            inside = inside & (Count(at) < Count(size[d]));
        }
        return inside;
    }
    TILEWISE_DEVICE Offset offset(const Outer& o, const Inner& i) const {
        return is_inside(o, i) ? o.at + i.at : Far::kNowhere;
    }
    TILEWISE_DEVICE Offset lane_offset(const Outer& o, const Inner& i) const {
        return is_inside(o, i) ? o.at : Far::kNowhere;
    }
    static TILEWISE_DEVICE Offset common(const Inner& i) { return i.at; }
};

// `run` steps of k from a multiple of it on are of one tap.
template <class T, int ndim, int run, bool wide = false, bool whole_chunks = false>
struct WeightSource {
    using Count = typename Counting<wide>::Count;
    using Far = Reach<wide>;
    using Offset = typename Far::Offset;
    using Memory = typename Far::Memory;
    static constexpr bool kWide = wide, kWholeChunks = false;
    static constexpr int kFirst = kMaxKernelDims - ndim, kRun = run, kNeighbours = 1;
    struct Outer {
        Offset at;  // or nowhere
    };
    struct Inner {
        Offset at;
        Count channel;
    };

    const char* data;  // of the group
    Offset filter_bytes, tap_bytes;
    Count filters, columns;
    Taps<ndim, 0, wide> taps;
    Count tap_first[ndim], tap_step[ndim], size[ndim];

    TILEWISE_DEVICE WeightSource(const void* group, const KernelConv& conv, const Walk& walk, Index counted)
        : data(static_cast<const char*>(group)),
          filter_bytes(Offset(weights_per_filter(conv) * T::bytes)),
          tap_bytes(Offset(conv.c * T::bytes)),
          filters(Count(conv.k)),
          columns(Count(conv.c)),
          taps(walk, counted) {
        TILEWISE_UNROLL
        for (int d = 0; d < ndim; ++d) {
            const WalkDim& dim = walk.dim[kFirst + d];
            tap_first[d] = Count(dim.tap_first), tap_step[d] = Count(dim.tap_step);
            size[d] = Count(conv.filter[kFirst + d]);
        }
    }
    TILEWISE_DEVICE Outer outer(Count, Count column) const {
        return {column < columns ? Offset(column) * T::bytes : Far::kNowhere};
    }
    // The filter's number of a tap of the walk.
    TILEWISE_DEVICE Count tap_number(const Count (&at)[ndim]) const {
        Count tap = 0;
        TILEWISE_UNROLL
        for (int d = 0; d < ndim; ++d) tap = tap * size[d] + tap_first[d] + at[d] * tap_step[d];
        return tap;
    }
    TILEWISE_DEVICE Inner inner(Count, Count index) const {
        Count at[ndim];
        const Count channel = taps.locate(index, at);
        return {Offset(channel) * filter_bytes + Offset(tap_number(at)) * tap_bytes, channel};
    }
    TILEWISE_DEVICE bool has(const Inner& i, int j) const { return !whole_chunks || i.channel + Count(j) < filters; }
    TILEWISE_DEVICE Offset run_bytes() const { return filter_bytes; }
    TILEWISE_DEVICE Memory memory(Count, Count, bool exists) const { return Far::memory(data, data, exists); }
    static TILEWISE_DEVICE Offset offset(const Outer& o, const Inner& i) {
        return o.at != Far::kNowhere ? o.at + i.at : Far::kNowhere;
    }
    static TILEWISE_DEVICE Offset lane_offset(const Outer& o, const Inner&) { return o.at; }
    static TILEWISE_DEVICE Offset common(const Inner& i) { return i.at; }
};

template <class T, bool wide = false>
struct FilterSource {
    using Count = typename Counting<wide>::Count;
    using Far = Reach<wide>;
    using Offset = typename Far::Offset;
    using Memory = typename Far::Memory;
    static constexpr bool kWide = wide, kWholeChunks = true;
    struct Outer {
        Offset at;  // or nowhere
    };
    struct Inner {
        Offset at;
        int left;
    };

    const char* data;  // of the group
    Index filter_bytes;
    Count filters, channels;
    Steps<wide> by_tap;

    TILEWISE_DEVICE FilterSource(const void* group, const KernelConv& conv, Index counted)
        : data(static_cast<const char*>(group)),
          filter_bytes(weights_per_filter(conv) * T::bytes),
          filters(Count(conv.k)),
          channels(Count(conv.c)),
          by_tap(Count(counted)) {}
    TILEWISE_DEVICE Outer outer(Count first, Count filter) const {
        return {filter < filters ? Offset(filter - first) * Offset(filter_bytes) : Far::kNowhere};
    }
    TILEWISE_DEVICE Inner inner(Count, Count index) const {
        Count channel = index;
        const Count tap = by_tap.divide(channel);
        return {Offset(tap * channels + channel) * T::bytes, bytes_left<T>(channel, channels)};
    }
    static TILEWISE_DEVICE int left(const Inner& inner) { return inner.left; }
    TILEWISE_DEVICE Memory memory(Count first, Count, bool exists) const {
        return Far::memory(data + Index(first) * filter_bytes, data, exists);
    }
    static TILEWISE_DEVICE Offset offset(const Outer& o, const Inner& i) {
        return o.at != Far::kNowhere ? o.at + i.at : Far::kNowhere;
    }
};

}  // namespace tilewise::hip
