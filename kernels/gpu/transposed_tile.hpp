// SPDX-License-Identifier: MIT
// The way of operand tiles that must lie the other way round in shared memory, with the interface of OperandTile
// (operand_tile.hpp). What lies outside the matrix, or beyond the end of k, is zero in shared memory and never read.
// BytesAlongK: 8-bit elements that are neighbours along m or n, for matrix units, which want neighbours along k: a thread
// reads `vector` elements of four steps of k and writes words of those four.
#pragma once
#include "operand_tile.hpp"

namespace tilewise::gpu {

template <class T, int extent, int depth, int vector, int threads>
struct BytesAlongK {
    static_assert(T::bytes == 1, "elements of 8 bits");
    static constexpr bool kAlongK = true;
    static constexpr int kSteps = 4;  // of k in a word
    using Layout = TileLayout<extent, depth>;
    static constexpr int kBytes = Layout::kBytes;
    static constexpr int kAcross = depth / kSteps, kTotal = kAcross * (extent / vector);
    static constexpr int kCount = (kTotal + threads - 1) / threads;
    static constexpr int kWords = vector < 4 ? 1 : vector / 4;
    static constexpr int kRegisters = kCount * kSteps * kWords;
    static_assert(depth % kSteps == 0 && extent % vector == 0);

    using Access = Packet<vector>;
    struct Unit {
        Access step[kSteps];
    };
    struct Registers {
        Unit unit[kCount];
    };

    const char* tile;  // its first element, at the first step of k
    Index line_bytes;  // from k to k
    int left;          // of the extent

    TILEWISE_DEVICE BytesAlongK(const OperandView& view, Index first, Index k_begin)
        : tile(static_cast<const char*>(view.data) + k_begin * view.line_stride + first),
          line_bytes(view.line_stride),
          left(view.extent - first < extent ? int(view.extent - first) : extent) {}

    // Neighbouring threads take neighbouring words of a line.
    static TILEWISE_DEVICE int k_of(int i) { return (thread_index() + i * threads) % kAcross * kSteps; }
    static TILEWISE_DEVICE int element_of(int i) { return (thread_index() + i * threads) / kAcross * vector; }
    static TILEWISE_DEVICE bool has_unit(int i) { return thread_index() + i * threads < kTotal; }

    TILEWISE_DEVICE void load_unit(Unit& unit, int i, int step, int k_left) const {
        TILEWISE_UNROLL
        for (int j = 0; j < kSteps; ++j) {
            unit.step[j] = zero_packet<vector>();
            if (has_unit(i) && k_of(i) + j < k_left && element_of(i) < left) {
                unit.step[j] =
                    load_global<vector>(tile + (Index(step) * depth + k_of(i) + j) * line_bytes + element_of(i));
            }
        }
    }
    static TILEWISE_DEVICE u32 word_of(const Access& access, int word) {
        if constexpr (vector < 4) {
            return access.value;
        } else {
            return access.words[word];
        }
    }
    static TILEWISE_DEVICE void put_unit(const Unit& unit, int i, SharedAddress to) {
        if (!has_unit(i)) return;
        TILEWISE_UNROLL
        for (int e = 0; e < vector; ++e) {
            const u32 words[kSteps] = {word_of(unit.step[0], e / 4), word_of(unit.step[1], e / 4),
                                       word_of(unit.step[2], e / 4), word_of(unit.step[3], e / 4)};
            store_shared<4>(to + Layout::byte_offset(element_of(i) + e, k_of(i)), {{gather_bytes(words, e % 4)}});
        }
    }

    TILEWISE_DEVICE void load(Registers& registers, int step, int k_left) const {
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) load_unit(registers.unit[i], i, step, k_left);
    }
    static TILEWISE_DEVICE void put(const Registers& registers, SharedAddress to) {
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) put_unit(registers.unit[i], i, to);
    }
    TILEWISE_DEVICE void move(SharedAddress to, int step, int k_left) const {
        TILEWISE_ROLLED
        for (int i = 0; i < kCount; ++i) {
            Unit unit;
            load_unit(unit, i, step, k_left);
            put_unit(unit, i, to);
        }
    }
    // No copy turns them around: done on the spot.
    TILEWISE_DEVICE void copy(SharedAddress to, int step, int k_left) const { move(to, step, k_left); }
};

// How tiles of an operand come to shared memory: as they lie, or turned around where the arithmetic needs it.
template <class T, int extent, int depth, bool k_contiguous, int vector, int threads>
struct TileChoice {
    using type = OperandTile<T, extent, depth, k_contiguous, vector, threads>;
};
template <class T, int extent, int depth, int vector, int threads>
requires(T::bytes == 1) struct TileChoice<T, extent, depth, false, vector, threads> {
    using type = BytesAlongK<T, extent, depth, vector, threads>;
};

}  // namespace tilewise::gpu
