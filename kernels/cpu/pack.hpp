// SPDX-License-Identifier: MIT
// Packing: a panel is `width` rows of A (or columns of B, here both called lanes) over a range of k, stored as units[k
// / depth][lane], so that a micro-kernel reads it from front to back. A's panels are exactly as wide as the rows they
// hold; B's are warp_n wide, lanes past the edge are zero or any of the matrix's own values (their sums are never
// stored), and k past the end is zero in both. With a compensating engine, a panel of B ends in `width` int32: -128 *
// its column sums. Sources contiguous along the lanes are copied row by row; sources contiguous along k go through
// kLanes x kLanes register transposes. Each source byte is read once and each unit written once.
#pragma once
#include "engine.hpp"

namespace tilewise::cpu {

// One operand: element (lane, k) is at p + lane * lane_stride + k * k_stride. Nothing at or after limit is read.
//
// It is also the plainest source of operands, which is what the loop nest takes: a source gives lanes x k of its elements
// at a time as an Operand, where they lie (as here) or gathered into a store.
template <class T>
struct Operand {
    using Element = T;
    using Storage = typename T::Storage;
    static constexpr bool gathers = false;
    const Storage* p;
    Index lane_stride, k_stride;
    const Storage* limit;

    TILEWISE_INLINE Operand at(Index lane, Index k) const {
        return {p + lane * lane_stride + k * k_stride, lane_stride, k_stride, limit};
    }
    TILEWISE_INLINE Operand block(Index lane, Index, Index k, Index, Storage*) const { return at(lane, k); }
};

template <class E, bool is_a>
TILEWISE_INLINE void put_unit(u32* to, U units, I& sum) {
    store(to, units);
    if constexpr (E::compensates && !is_a) sum = E::compensation(sum, units);
}

// Lanes contiguous. A store may run past the panel's width: the next unit's store, or the next panel, covers it.
template <class E, class T, bool is_a>
TILEWISE_NOINLINE void pack_rows(u32* to, Index width, Operand<T> from, Index lanes, Index k, i32* compensation) {
    for (Index done = 0; done < k; done += E::depth, to += width) {
        const auto* row = from.p + done * from.k_stride;
        for (Index lane = 0; lane < width; lane += kLanes) {
            U units = {};
            if (lanes - lane >= kLanes && k - done >= E::depth) {
                units = E::template along_lanes<T, is_a>(row + lane, from.k_stride, nullptr);
            } else if (lane < lanes) {
                const Edge<T> edge = {k - done, lanes - lane, from.limit};
                units = E::template along_lanes<T, is_a>(row + lane, from.k_stride, &edge);
            }
            I sum = {};
            put_unit<E, is_a>(to + lane, units, sum);
            if constexpr (E::compensates && !is_a) store(compensation + lane, load<I>(compensation + lane) - sum);
        }
    }
}

// kLanes units of kLanes lanes, turned around. Lanes after `last` repeat it: their sums are never stored.
template <class E, class T, bool is_a>
TILEWISE_INLINE void turn_square(u32* to, Index width, const typename T::Storage* p, Index stride, Index last, I& sum) {
    U v[kLanes];
    TILEWISE_UNROLL
    for (int i = 0; i < kLanes; ++i) v[i] = E::template along_k<T, is_a>(p + least<Index>(i, last) * stride);
    transpose(v);
    TILEWISE_UNROLL
    for (int i = 0; i < kLanes; ++i) put_unit<E, is_a>(to + i * width, v[i], sum);
}

// k contiguous: transposes; the last k, fewer than a square, through copies that end in zeros. Groups of lanes go from
// the last to the first, so that what a narrow last group writes too much is covered by the first group of the next
// unit.
template <class E, class T, bool is_a>
TILEWISE_NOINLINE void pack_columns(u32* to, Index width, Operand<T> from, Index lanes, Index k, i32* compensation) {
    constexpr Index full = kLanes * E::depth;
    alignas(kCacheLine) typename T::Storage copy[kLanes * full];
    alignas(kCacheLine) u32 turned[kLanes * kLanes];
    for (Index lane = round_up(lanes, kLanes) - kLanes; lane >= 0; lane -= kLanes) {
        const Index last = lanes - lane - 1;
        I sum = {};
        for (Index done = 0; done < k; done += full) {
            const auto* p = from.p + lane * from.lane_stride + done;
            u32* out = to + done / E::depth * width + lane;
            const bool rest = k - done < full;
            if (rest) {
                __builtin_memset(copy, 0, sizeof(copy));
                for (Index i = 0; i <= least<Index>(last, kLanes - 1); ++i) {
                    __builtin_memcpy(copy + i * full, p + i * from.lane_stride, (k - done) * sizeof(copy[0]));
                }
            }
            turn_square<E, T, is_a>(rest ? turned : out, rest ? kLanes : width, rest ? copy : p,
                                    rest ? full : from.lane_stride, last, sum);
            for (Index i = 0; rest && i * E::depth < k - done; ++i) {
                store(out + i * width, load<U>(turned + i * kLanes));
            }
        }
        if constexpr (E::compensates && !is_a) store(compensation + lane, load<I>(compensation + lane) - sum);
    }
    for (Index lane = round_up(lanes, kLanes); lane + kLanes <= width; lane += kLanes) {  // lanes that do not exist
        for (Index i = 0; i * E::depth < k; ++i) store(to + i * width + lane, U{});
    }
}

// k elements from `from` on, of `lanes` lanes. The compensation is added to: clear it before the first piece of a
// panel.
template <class E, class T, bool is_a>
TILEWISE_INLINE void pack_panel(u32* to, Index width, Operand<T> from, Index lanes, Index k, i32* compensation) {
    constexpr bool as_a = is_a || !E::compensates;  // without compensation both sides are packed alike
    if (from.lane_stride == 1) return pack_rows<E, T, as_a>(to, width, from, lanes, k, compensation);
    return pack_columns<E, T, as_a>(to, width, from, lanes, k, compensation);
}

}  // namespace tilewise::cpu
