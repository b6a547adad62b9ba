// SPDX-License-Identifier: MIT
// The way of operand tiles that must lie the other way round in shared memory, with the interface of OperandTile
// (operand_tile.hpp). What lies outside the matrix, or beyond the end of k, is zero in shared memory and never read.
//   BytesAlongK      8-bit elements that are neighbours along m or n, for mma.sync, which wants neighbours along k: a thread
//                    reads `vector` elements of four steps of k and writes words of those four.
//   WordsAlongExtent fp32 that are neighbours along k, for plain arithmetic, which reads rows of one step of k: every
//                    element goes its own way, also by asynchronous copies.
#pragma once
#include "operand_tile.hpp"

namespace tilewise::cuda {

// Byte `index` of each of four words, the first word's lowest.
TILEWISE_DEVICE u32 gather_bytes(const u32 (&words)[4], int index) {
#if defined(__CUDACC__)
    const u32 pick = u32(index) | u32(index + 4) << 4;
    return __byte_perm(__byte_perm(words[0], words[1], pick), __byte_perm(words[2], words[3], pick), 0x5410);
#else
    u32 gathered = 0;
    for (int i = 0; i < 4; ++i) gathered |= (words[i] >> (8 * index) & 0xffu) << (8 * i);
    return gathered;
#endif
}

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

template <class T, int extent, int depth, int vector, int threads>
struct WordsAlongExtent {
    static_assert(T::bytes == 4, "elements of 32 bits");
    static constexpr bool kAlongK = false;
    using Layout = TileLayout<depth, extent * 4>;
    static constexpr int kBytes = Layout::kBytes;

    // A thread's accesses of `each` elements: all at the same k, `kRowStep` rows apart. Neighbouring threads take neighbours
    // along k.
    template <int each>
    struct Walk {
        static constexpr int kPerRow = depth / each, kRowStep = threads / kPerRow;
        static constexpr int kCount = extent < kRowStep ? 1 : extent / kRowStep;
        static_assert(depth % each == 0 && threads % kPerRow == 0 && (kRowStep & (kRowStep - 1)) == 0);
        static_assert(extent < kRowStep || extent % kRowStep == 0);
        int row = thread_index() / kPerRow, k = thread_index() % kPerRow * each;

        TILEWISE_DEVICE bool has_rows() const { return extent >= kRowStep || row < extent; }
        // Of element k + j of access i: the rows before i * kRowStep fill the bits below, so that its place differs by that.
        TILEWISE_DEVICE u32 target(int i, int j) const {
            return Layout::byte_offset(k + j, row * 4) ^ u32(i * kRowStep * 4);
        }
    };
    static constexpr int kCount = Walk<vector>::kCount, kRegisters = kCount * vector;

    using Access = Packet<4 * vector>;
    struct Registers {
        Access access[kCount];
    };

    const char* tile;  // its first element, at the first step of k
    Index row_bytes;   // from row (or column) to row
    int left;          // of the extent

    TILEWISE_DEVICE WordsAlongExtent(const OperandView& view, Index first, Index k_begin)
        : tile(static_cast<const char*>(view.data) + (first * view.line_stride + k_begin) * 4),
          row_bytes(view.line_stride * 4),
          left(view.extent - first < extent ? int(view.extent - first) : extent) {}

    template <int each>
    TILEWISE_DEVICE const char* source(const Walk<each>& walk, int step) const {
        return tile + walk.row * row_bytes + (Index(step) * depth + walk.k) * 4;
    }
    // How many rows from the walk's first on are inside.
    template <int each>
    TILEWISE_DEVICE int inside(const Walk<each>& walk, int k_left) const {
        return walk.k < k_left ? left - walk.row : 0;
    }

    TILEWISE_DEVICE void load(Registers& registers, int step, int k_left) const {
        const Walk<vector> walk;
        const char* from = source(walk, step);
        const int rows = inside(walk, k_left);
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i, from += walk.kRowStep * row_bytes) {
            registers.access[i] = zero_packet<4 * vector>();
            if (i * walk.kRowStep < rows) registers.access[i] = load_global<4 * vector>(from);
        }
    }
    static TILEWISE_DEVICE void put_access(const Walk<vector>& walk, const Access& access, int i, SharedAddress to) {
        TILEWISE_UNROLL
        for (int j = 0; j < vector; ++j) store_shared<4>(to + walk.target(i, j), {{access.words[j]}});
    }
    static TILEWISE_DEVICE void put(const Registers& registers, SharedAddress to) {
        const Walk<vector> walk;
        if (!walk.has_rows()) return;
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) put_access(walk, registers.access[i], i, to);
    }
    TILEWISE_DEVICE void move(SharedAddress to, int step, int k_left) const {
        const Walk<vector> walk;
        const char* from = source(walk, step);
        const int rows = inside(walk, k_left);
        TILEWISE_ROLLED
        for (int i = 0; i < kCount && walk.has_rows(); ++i, from += walk.kRowStep * row_bytes) {
            Access access = zero_packet<4 * vector>();
            if (i * walk.kRowStep < rows) access = load_global<4 * vector>(from);
            put_access(walk, access, i, to);
        }
    }

    // One element a copy, whatever the alignment. What is outside is not read, so its address does not matter.
    TILEWISE_DEVICE void copy(SharedAddress to, int step, int k_left) const {
        const Walk<1> walk;
        const char* from = source(walk, step);
        const int rows = inside(walk, k_left);
        if (!walk.has_rows()) return;
        TILEWISE_UNROLL
        for (int i = 0; i < walk.kCount; ++i, from += walk.kRowStep * row_bytes) {
            copy_async<4>(to + walk.target(i, 0), from, i * walk.kRowStep < rows ? 4 : 0);
        }
    }
};

// How tiles of an operand come to shared memory: as they lie, or turned around where the arithmetic needs it.
template <class T, int extent, int depth, bool k_contiguous, int vector, int threads, bool plain_arithmetic>
struct TileChoice {
    using type = OperandTile<T, extent, depth, k_contiguous, vector, threads>;
};
template <class T, int extent, int depth, int vector, int threads>
requires(T::bytes == 1) struct TileChoice<T, extent, depth, false, vector, threads, false> {
    using type = BytesAlongK<T, extent, depth, vector, threads>;
};
template <class T, int extent, int depth, int vector, int threads>
struct TileChoice<T, extent, depth, true, vector, threads, true> {
    using type = WordsAlongExtent<T, extent, depth, vector, threads>;
};

}  // namespace tilewise::cuda
