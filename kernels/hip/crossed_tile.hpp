// SPDX-License-Identifier: MIT
// The way of operand tiles of 16-bit elements that lie across k to shared memory, where they lie across k too (crossed_layout.hpp), with
// the interface of the tiles in bounded_tile.hpp.
//   CrossedTile    through registers
//   DirectCrossed  copied straight to shared memory
#pragma once
#include "../gpu/operand_tile.hpp"
#include "crossed_layout.hpp"
#include "primitives.hpp"

namespace tilewise::hip {

// The memory of tile number `step`, of which nothing is read where it does not exist.
TILEWISE_DEVICE Bounded tile_memory(const char* first, Index step_bytes, int step, bool exists) {
    return bounded(first + step * step_bytes, exists ? kMostOffset : 0);
}

struct NoRegisters {};

// A lane's chunk of eight steps of k.
template <class Layout>
TILEWISE_DEVICE Packet<16> load_crossed(SharedAddress place, int element, int line) {
    const Packet<8> first = load_turned(Layout::at(place, element, line)),
                    second = load_turned(Layout::at(place, element, line + 4));
    return {{first.words[0], first.words[1], second.words[0], second.words[1]}};
}

template <class T, int extent, int depth, int threads>
struct CrossedTile : TilePieces<T, extent, false, depth, extent * T::bytes / kChunkBytes, threads> {
    static_assert(T::bytes == 2, "reads turn elements of 16 bits around");
    static constexpr bool kAlongK = false, kDirect = false;
    static constexpr int kLineBytes = extent * T::bytes, kCopies = 0;
    using Layout = CrossedLayout<depth, kLineBytes>;
    static constexpr int kBytes = Layout::kBytes;
    using Pieces = TilePieces<T, extent, false, depth, kLineBytes / kChunkBytes, threads>;
    using Pieces::kCount, Pieces::has_piece, Pieces::line_of;
    static constexpr int kRegisters = kCount * kChunkBytes / 4;

    struct Registers {
        Packet<kChunkBytes> access[kCount];
    };

    const char* first;
    u32 offset[kCount];

    static TILEWISE_DEVICE int byte_of(int i) { return Pieces::piece_of(i) * kChunkBytes; }
    TILEWISE_DEVICE CrossedTile(const OperandView& view, Index element, Index k_begin)
        : Pieces(view, element, k_begin), first(uniform(this->tile)) {
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) {
            const bool inside = has_piece(i) && byte_of(i) < this->left * T::bytes;
            offset[i] = inside ? u32(line_of(i)) * u32(this->line_bytes) + u32(byte_of(i)) : kOutside;
        }
    }
    TILEWISE_DEVICE Bounded memory(int step, bool exists) const {
        return tile_memory(first, depth * this->line_bytes, step, exists);
    }
    TILEWISE_DEVICE void load(Registers& to, int step, bool exists) const {
        const Bounded from = memory(step, exists);
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) to.access[i] = load_bounded<kChunkBytes>(from, offset[i]);
    }
    TILEWISE_DEVICE void load_last(Registers& to, int step, bool exists, int k_left) const {
        const Bounded from = memory(step, exists);
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) {
            to.access[i] = load_bounded<kChunkBytes>(from, line_of(i) < k_left ? offset[i] : kOutside);
        }
    }
    static TILEWISE_DEVICE void put(const Registers& from, SharedAddress to) {
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) {
            if (has_piece(i))
                store_shared<kChunkBytes>(to + Layout::byte_offset(line_of(i), byte_of(i)), from.access[i]);
        }
    }
};

template <class T, int extent, int depth, int threads>
struct DirectCrossed {
    static_assert(T::bytes == 2, "reads turn elements of 16 bits around");
    static constexpr bool kAlongK = false, kDirect = true;
    static constexpr int kLineBytes = extent * T::bytes, kRegisters = 0, kCount = 0;
    using Layout = CrossedLayout<depth, kLineBytes>;
    static constexpr int kBytes = Layout::kBytes;
    static constexpr int kWaveBytes = kArchLanes * kChunkBytes, kCopies = kBytes / (threads * kChunkBytes);
    static_assert(kBytes % (threads * kChunkBytes) == 0, "every lane copies as much as any other");
    using Registers = NoRegisters;

    const char* first;
    Index step_bytes;
    u32 offset[kCopies];

    // Where piece i of the lane comes from: the place it gets is the thread's, the chunk that belongs there follows from that.
    static TILEWISE_DEVICE int place_of(int i) { return (i * threads + thread_index()) * kChunkBytes; }
    static TILEWISE_DEVICE int line_of(int i) { return place_of(i) / kLineBytes; }
    static TILEWISE_DEVICE int byte_of(int i) {
        const u32 place = u32(place_of(i)), line = place / kLineBytes;
        return int(Layout::byte_offset(line, place % kLineBytes) % kLineBytes);  // the exchange is its own inverse
    }
    TILEWISE_DEVICE DirectCrossed(const OperandView& view, Index element, Index k_begin) {
        const Index line_bytes = view.line_stride * T::bytes, left = view.extent - element;
        first = uniform(static_cast<const char*>(view.data) + k_begin * line_bytes + element * T::bytes);
        step_bytes = depth * line_bytes;
        TILEWISE_UNROLL
        for (int i = 0; i < kCopies; ++i) {
            const bool inside = byte_of(i) < left * T::bytes;
            offset[i] = inside ? u32(line_of(i)) * u32(line_bytes) + u32(byte_of(i)) : kOutside;
        }
    }
    // In shared memory the wave's first byte of piece i.
    static TILEWISE_DEVICE u32 wave_place(int i) { return u32(i * threads * kChunkBytes + warp_index() * kWaveBytes); }

    TILEWISE_DEVICE void copy(SharedAddress to, int step, bool exists) const {
        const Bounded from = tile_memory(first, step_bytes, step, exists);
        TILEWISE_UNROLL
        for (int i = 0; i < kCopies; ++i) copy_direct<kChunkBytes>(from, offset[i], to + wave_place(i));
    }
    TILEWISE_DEVICE void copy_last(SharedAddress to, int step, bool exists, int k_left) const {
        const Bounded from = tile_memory(first, step_bytes, step, exists);
        TILEWISE_UNROLL
        for (int i = 0; i < kCopies; ++i) {
            copy_direct<kChunkBytes>(from, line_of(i) < k_left ? offset[i] : kOutside, to + wave_place(i));
        }
    }
};

}  // namespace tilewise::hip
