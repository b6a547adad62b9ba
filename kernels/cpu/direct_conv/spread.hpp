// SPDX-License-Identifier: MIT
// How the lanes of a vector of output channels find their inputs. Lane l holds channel `first_out + l`, which belongs to
// group (first_out + l) / outputs; its inputs are the channels of that group, one for each step of the reduction. Seen
// from the first lane's input the others lie a whole number of groups further on, at every step alike: so one permutation
// of a vector of neighbouring inputs serves all steps, and nothing is multiplied that is not needed. Depthwise without a
// multiplier needs no permutation at all. Inputs come in units of 32 bits, as in engine.hpp.
#pragma once
#include "../types.hpp"

namespace tilewise::cpu::direct_conv {

// An fp32 (others are converted), or an int8 widened to 32 bits; weights for the latter come in the low 16 bits alone.
template <class T>
struct SingleUnits {
    using Acc = typename ConditionalType<kSame<T, Int8>, i32, float>::type;
    using Storage = typename T::Storage;
    using Raw = Vec<Storage>;
    static constexpr int depth = 1, rows = 1;
    static constexpr bool is_integer = kSame<T, Int8>, is_dot = false;
    static TILEWISE_INLINE Vec<Acc> step(Vec<Acc> acc, U in, U weight) {
        if constexpr (is_integer) {
            return dot_i16(in, weight, acc);
        } else {
            return fma(as_float(in), as_float(weight), acc);
        }
    }
    static TILEWISE_INLINE U units(Raw raw) {
        if constexpr (is_integer) {
            return reinterpret_cast<U>(widen(raw));
        } else if constexpr (kSame<T, Bf16> && kHasWordPermute) {  // one instruction where decode takes two
            return high_words(raw, kLaneNumbers << 16);
        } else {
            return as_bits(decode<T>(raw));
        }
    }
    static TILEWISE_INLINE U spread(Raw raw, U from) {
        if constexpr (kSame<T, Bf16> && kHasWordPermute) {
            return high_words(raw, from << 16);
        } else {
            return permute(units(raw), from);
        }
    }
};

// Two neighbouring channels of a group in bf16.
struct PairUnits {
    using Acc = float;
    using Storage = u16;
    using Raw = U;
    static constexpr int depth = 2, rows = 1;
    static constexpr bool is_integer = false, is_dot = true;
    static TILEWISE_INLINE F step(F acc, U in, U weight) { return dot_bf16(in, weight, acc); }
    static TILEWISE_INLINE U units(U raw) { return raw; }
    static TILEWISE_INLINE U spread(U raw, U from) { return permute(raw, from); }
};

// Two bf16 of one channel, from the lines that two neighbouring rows of taps lead to.
struct RowPairUnits {
    using Acc = float;
    using Storage = u16;
    using Raw = Vec<u16>;
    static constexpr int depth = 1, rows = 2;
    static constexpr bool is_integer = false, is_dot = true;
    static TILEWISE_INLINE F step(F acc, U in, U weight) { return dot_bf16(in, weight, acc); }
    static TILEWISE_INLINE U units(Raw raw) { return widen(raw); }
};

template <class Units>
inline constexpr Index kUnitBytes = sizeof(typename Units::Storage) * Units::depth;

// The lanes of one vector read these.
struct Lanes {
    U from;       // the unit of its source vector that a lane takes
    U source;     // the number of that vector: 0 unless groups have many inputs and few outputs
    Index first;  // where the first lane's first input is among the channels of all groups
    Index reach;  // units from there to the last lane's
    Index valid;  // lanes that hold a channel
};

template <class Units>
TILEWISE_OUTER Lanes lanes_of(Index first_out, Index all_outputs, Index outputs, Index inputs) {
    Lanes lanes = {};
    lanes.valid = least<Index>(kLanes, all_outputs - first_out);
    lanes.first = first_out / outputs * inputs;
    Index rest = first_out % outputs, at = 0;  // the channel within its group
    for (Index l = 0; l < lanes.valid; ++l) {
        lanes.from[l] = u32(at % kLanes), lanes.source[l] = u32(at / kLanes);
        lanes.reach = at + 1;
        if (++rest == outputs) rest = 0, at += inputs / Units::depth;
    }
    return lanes;
}

// The units of all lanes at one pixel and step: `p` is the first lane's. Whole reads vectors to their end, even if the
// lanes need less.
template <class Units, bool whole, bool spread>
TILEWISE_INLINE U read_lanes(const typename Units::Storage* p, const Lanes& lanes) {
    using Raw = typename Units::Raw;
    const Raw first = whole ? load<Raw>(p) : load_first<Raw>(p, least<Index>(lanes.reach, kLanes) * kUnitBytes<Units>);
    if constexpr (!spread) return Units::units(first);
    U value = Units::spread(first, lanes.from);
    for (Index s = kLanes; __builtin_expect(s < lanes.reach, 0); s += kLanes) {
        const Index count = whole ? Index(kLanes) : least<Index>(kLanes, lanes.reach - s);
        const Raw next = load_first<Raw>(p + s * Units::depth, count * kUnitBytes<Units>);
        value = select(lanes.source == u32(s / kLanes), Units::spread(next, lanes.from), value);
    }
    return value;
}

}  // namespace tilewise::cpu::direct_conv
