// SPDX-License-Identifier: MIT
// Weights for the direct convolution kernels: from GKYXC into vectors over the output channels of all groups,
//     [block of `width` channels][residue class][row of taps][step of the reduction][tap of the class][lane]
// in units of 32 bits (spread.hpp); lanes past the last channel are zero. Done anew by each call for the channels it
// works on, so where every lane's weights are neighbours (all but backward data with several channels a group) sixteen
// lanes at a time are turned around in registers.
#pragma once
#include "../../common/conv_walk.hpp"
#include "../primitives.hpp"
#include "spread.hpp"

namespace tilewise::cpu::direct_conv {

// Taps of a line that the pixels of one residue class meet, in the order of the pixels they read.
struct LineClass {
    WalkDim x;
    Index offset;  // of its weights, in taps
};
// Where tap number t of a line is: its class, and its place there. No class (-1) has the taps that no pixel meets.
struct TapPlace {
    Index line_class, place;
};

// How the output channels of a direction find their weights.
struct WeightMap {
    bool backward;
    Index outputs, inputs;  // channels per group, of what is written and read
    Index all_outputs;
    Index taps, line_taps;  // of the filter, and along its last dimension
    Index filter_size;      // elements of one channel of y

    TILEWISE_INLINE Index at(Index output, Index tap, Index input) const {
        if (!backward) return output * filter_size + tap * inputs + input;
        return (output / outputs * inputs + input) * filter_size + tap * outputs + output % outputs;
    }
};

template <class Units, class T, int width>
struct WeightPacker {
    using Storage = typename T::Storage;
    const WeightMap& map;
    const LineClass* classes;
    const TapPlace* places;
    const Storage* from;
    Index next_row;  // for units of two rows: how far on, in rows of taps of one plane, the second one is
    Index plane_rows;

    TILEWISE_INLINE Index steps() const { return map.inputs / Units::depth; }
    TILEWISE_INLINE Index block_words() const { return map.taps * steps() * width; }

    TILEWISE_INLINE Index place_of(const TapPlace& place, Index row, Index step) const {
        const LineClass& c = classes[place.line_class];
        const Index rows = map.taps / map.line_taps;
        return (c.offset * rows * steps() + (row * steps() + step) * c.x.taps + place.place) * width;
    }
    TILEWISE_INLINE void put(u32* block, Index tap, Index step, U units) const {
        const TapPlace& place = places[tap % map.line_taps];
        if (place.line_class >= 0) store(block + place_of(place, tap / map.line_taps, step), units);
    }

    static TILEWISE_INLINE U packed(Vec<Storage> raw) {
        if constexpr (Units::is_integer) {
            return reinterpret_cast<U>(widen(raw)) & 0xffffu;
        } else if constexpr (Units::rows == 2) {
            return Units::units(raw);
        } else {
            return as_bits(decode<T>(raw));
        }
    }

    // One vector of lanes, whose first channel is `output`.
    TILEWISE_OUTER void pack_lanes(u32* block, Index output) const {
        const Index lanes = least<Index>(kLanes, map.all_outputs - output);
        if (lanes <= 0) {
            for (Index e = 0; e < map.taps * steps(); ++e) store(block + e * width, U{});
            return;
        }
        if (Units::depth == 1 && (!map.backward || map.outputs == 1)) return pack_turned(block, output, lanes);
        for (Index tap = 0; tap < map.taps; ++tap) {
            for (Index s = 0; s < steps(); ++s) {
                alignas(kCacheLine) Storage raw[kLanes * Units::depth] = {};
                for (Index i = 0; i < lanes * Units::depth; ++i) {
                    raw[i] = from[map.at(output + i / Units::depth, tap, s * Units::depth + i % Units::depth)];
                }
                if constexpr (Units::depth == 1) {
                    put(block, tap, s, packed(load<Vec<Storage>>(raw)));
                } else {
                    put(block, tap, s, load<U>(raw));
                }
            }
        }
    }

    // A lane's weights are neighbours: [tap][input] forward, [input][tap] for backward data of one channel a group.
    TILEWISE_NOINLINE void pack_turned(u32* block, Index output, Index lanes) const {
        const Index length = map.taps * map.inputs, inner = map.backward ? map.taps : map.inputs;
        Index outer = 0, in = 0;
        for (Index e = 0; e < length; e += kLanes) {
            const Index count = least<Index>(kLanes, length - e);
            U v[kLanes];
            for (Index l = 0; l < kLanes; ++l) {
                const Storage* p = from + (output + l) * length + e;
                v[l] = l < lanes ? packed(load_first<Vec<Storage>>(p, count * Index(sizeof(Storage)))) : U{};
            }
            transpose(v);
            for (Index i = 0; i < count; ++i) {
                put(block, map.backward ? in : outer, map.backward ? outer : in, v[i]);
                if (++in == inner) in = 0, ++outer;
            }
        }
    }

    // Puts the weights of the second row beside those of the first. Rows come in order, so no half is lost.
    TILEWISE_OUTER void pair_rows(u32* block) const {
        for (Index tap = 0; tap < map.taps; ++tap) {
            const Index row = tap / map.line_taps;
            const TapPlace& place = places[tap % map.line_taps];
            if (place.line_class < 0 || row % plane_rows + next_row >= plane_rows) continue;
            u32* unit = block + place_of(place, row, 0);
            store(unit, load<U>(unit) | load<U>(block + place_of(place, row + next_row, 0)) << 16);
        }
    }

    // Blocks of channels from `begin` to `end`.
    TILEWISE_OUTER void pack(u32* to, Index begin, Index end) const {
        for (Index block = begin; block < end; block += width, to += block_words()) {
            for (Index lane = 0; lane < width; lane += kLanes) {
                pack_lanes(to + lane, block + lane);
                if (Units::rows == 2) pair_rows(to + lane);
            }
        }
    }
};

}  // namespace tilewise::cpu::direct_conv
