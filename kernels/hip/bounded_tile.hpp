// SPDX-License-Identifier: MIT
// The ways of operand tiles of a product to shared memory for the loops of mfma_loop.hpp. All lanes have the same address of a tile and
// each its own offsets, which are worked out once; what lies outside the matrix has the offset kOutside, which reads as zero. So a step
// of k moves the address and nothing else. Only the last tile of k may be cut short: it has offsets of its own.
//   BoundedTile  lies along k in memory; through registers
//   DirectTile   the same; copied straight to shared memory, 4 or 16 bytes of a lane side by side, so that lanes ask for the chunks that
//                belong there (tile_layout.hpp exchanges them)
//   PackedDirect B that was packed ahead as it lies in shared memory; copied the same way
//   BoundedTurn  lies across k; through registers, where it is turned around (turned_tile.hpp)
//   CrossedTile, DirectCrossed  lie across k, also in shared memory, from where they are read turned around (crossed_tile.hpp)
//   PlainTile    anything else, by addresses of 64 bits and branches
#pragma once
#include "crossed_tile.hpp"
#include "turned_tile.hpp"

namespace tilewise::hip {

template <class T, int extent, int depth, int vector, int threads>
struct BoundedTile : TilePieces<T, extent, true, extent, depth / vector, threads> {
    static constexpr bool kAlongK = true, kDirect = false;
    using Layout = TileLayout<extent, depth * T::bytes>;
    static constexpr int kBytes = Layout::kBytes, kCopies = 0;
    static constexpr int kAccessBytes = vector * T::bytes, kPerLine = depth / vector;
    static_assert(kAccessBytes <= kChunkBytes && depth % vector == 0, "a line is whole accesses of at most 16 bytes");
    using Pieces = TilePieces<T, extent, true, extent, kPerLine, threads>;
    using Pieces::kCount, Pieces::kRegular, Pieces::has_piece, Pieces::line_of;
    static constexpr int kRegisters = kCount * (kAccessBytes < 4 ? 1 : kAccessBytes / 4);
    // Lines from access to access; after eight of them chunks are exchanged alike.
    static constexpr int kLineStep = threads / kPerLine;
    static constexpr bool kEven = kRegular && kLineStep % kBankChunks == 0;

    struct Registers {
        Packet<kAccessBytes> access[kCount];
    };

    const char* first;
    u32 offset[kCount];

    TILEWISE_DEVICE BoundedTile(const OperandView& view, Index row, Index k_begin) : Pieces(view, row, k_begin) {
        first = uniform(this->tile);
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) {
            const bool inside = has_piece(i) && line_of(i) < this->left;
            offset[i] = inside ? u32(line_of(i)) * u32(this->line_bytes) + u32(element_of(i) * T::bytes) : kOutside;
        }
    }
    static TILEWISE_DEVICE int element_of(int i) { return Pieces::piece_of(i) * vector; }
    static TILEWISE_DEVICE u32 target(int i) {
        if constexpr (kEven) {
            return Layout::byte_offset(line_of(0), element_of(0) * T::bytes) + u32(i * kLineStep * depth * T::bytes);
        } else {
            return Layout::byte_offset(line_of(i), element_of(i) * T::bytes);
        }
    }

    TILEWISE_DEVICE Bounded memory(int step, bool exists) const {
        return tile_memory(first, depth * T::bytes, step, exists);
    }
    TILEWISE_DEVICE void load(Registers& to, int step, bool exists) const {
        const Bounded from = memory(step, exists);
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) to.access[i] = load_bounded<kAccessBytes>(from, offset[i]);
    }
    TILEWISE_DEVICE void load_last(Registers& to, int step, bool exists, int k_left) const {
        const Bounded from = memory(step, exists);
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) {
            to.access[i] = load_bounded<kAccessBytes>(from, element_of(i) < k_left ? offset[i] : kOutside);
        }
    }
    static TILEWISE_DEVICE void put(const Registers& from, SharedAddress to) {
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) {
            if (has_piece(i)) store_shared<kAccessBytes>(to + target(i), from.access[i]);
        }
    }
};

// A wave's instruction fills kWaveBytes of shared memory that follow each other.
template <class T, int extent, int depth, int piece_bytes, int threads>
struct DirectTile {
    static constexpr bool kAlongK = true, kDirect = true;
    static constexpr int kLineBytes = depth * T::bytes, kRegisters = 0, kCount = 0;
    using Layout = TileLayout<extent, kLineBytes>;
    static constexpr int kBytes = Layout::kBytes;
    static constexpr int kWaveBytes = kArchLanes * piece_bytes, kCopies = kBytes / (threads * piece_bytes);
    static_assert(kBytes % (threads * piece_bytes) == 0, "every lane copies as much as any other");
    using Registers = NoRegisters;

    const char* first;
    u32 offset[kCopies];

    // Where piece i of the lane comes from: the place it gets is the thread's, the chunk that belongs there follows from that.
    static TILEWISE_DEVICE int place_of(int i) { return (i * threads + thread_index()) * piece_bytes; }
    static TILEWISE_DEVICE int line_of(int i) { return place_of(i) / kLineBytes; }
    static TILEWISE_DEVICE int byte_of(int i) {
        const u32 place = u32(place_of(i)), line = place / kLineBytes;
        // The exchange is its own inverse.
        return int(Layout::byte_offset(line, place % kLineBytes) % kLineBytes);
    }
    TILEWISE_DEVICE DirectTile(const OperandView& view, Index row, Index k_begin) {
        first = uniform(static_cast<const char*>(view.data) + (row * view.line_stride + k_begin) * T::bytes);
        const Index left = view.extent - row;
        TILEWISE_UNROLL
        for (int i = 0; i < kCopies; ++i) {
            offset[i] =
                line_of(i) < left ? u32(line_of(i)) * u32(view.line_stride * T::bytes) + u32(byte_of(i)) : kOutside;
        }
    }
    // In shared memory the wave's first byte of piece i.
    static TILEWISE_DEVICE u32 wave_place(int i) { return u32(i * threads * piece_bytes + warp_index() * kWaveBytes); }

    TILEWISE_DEVICE void copy(SharedAddress to, int step, bool exists) const {
        const Bounded from = tile_memory(first, kLineBytes, step, exists);
        TILEWISE_UNROLL
        for (int i = 0; i < kCopies; ++i) copy_direct<piece_bytes>(from, offset[i], to + wave_place(i));
    }
    TILEWISE_DEVICE void copy_last(SharedAddress to, int step, bool exists, int k_left) const {
        const Bounded from = tile_memory(first, kLineBytes, step, exists);
        TILEWISE_UNROLL
        for (int i = 0; i < kCopies; ++i) {
            copy_direct<piece_bytes>(from, byte_of(i) < k_left * T::bytes ? offset[i] : kOutside, to + wave_place(i));
        }
    }
};

template <class T, int extent, int depth, int piece_bytes, int threads>
struct PackedDirect {
    static constexpr bool kAlongK = true, kDirect = true;
    static constexpr int kRegisters = 0, kCount = 0;
    using Layout = TileLayout<extent, depth * T::bytes>;
    static constexpr int kBytes = Layout::kBytes;
    static constexpr int kWaveBytes = kArchLanes * piece_bytes, kCopies = kBytes / (threads * piece_bytes);
    static_assert(kBytes % (threads * piece_bytes) == 0, "every lane copies as much as any other");
    using Registers = NoRegisters;

    const char* first;

    TILEWISE_DEVICE explicit PackedDirect(const void* tiles) : first(uniform(static_cast<const char*>(tiles))) {}
    TILEWISE_DEVICE void copy(SharedAddress to, int step, bool exists) const {
        const Bounded from = tile_memory(first, kBytes, step, exists);
        TILEWISE_UNROLL
        for (int i = 0; i < kCopies; ++i) {
            const u32 wave = u32(i * threads * piece_bytes + warp_index() * kWaveBytes);
            copy_direct<piece_bytes>(from, wave + u32(lane_index() * piece_bytes), to + wave);
        }
    }
    // What lies beyond the end of k was packed as zero.
    TILEWISE_DEVICE void copy_last(SharedAddress to, int step, bool exists, int) const { copy(to, step, exists); }
};

// Turned is TurnedTile or, for 8-bit elements, BytesAlongK (../gpu/transposed_tile.hpp).
template <class T, class Turned, int depth>
struct BoundedTurn : Turned {
    using Turned::kCount, Turned::kSteps, Turned::element_of, Turned::has_unit;
    using typename Turned::Access, typename Turned::Registers;
    static constexpr bool kDirect = false;
    static constexpr int kCopies = 0, kAccessBytes = sizeof(Access);

    const char* first;
    u32 offset[kCount];

    static TILEWISE_DEVICE int first_k(int i) {
        if constexpr (T::bytes == 1) {
            return Turned::k_of(i);
        } else {
            return Turned::chunk_of(i) * kSteps;
        }
    }
    TILEWISE_DEVICE BoundedTurn(const OperandView& view, Index element, Index k_begin)
        : Turned(view, element, k_begin), first(uniform(this->tile)) {
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) {
            const u32 at = u32(first_k(i)) * u32(this->line_bytes) + u32(element_of(i) * T::bytes);
            offset[i] = has_unit(i) && element_of(i) < this->left ? at : kOutside;
        }
    }
    // From step of k to step of k, the same for all lanes. A tile that does not exist has none: an offset that all lanes have on top must
    // not lead beyond its end.
    TILEWISE_DEVICE u32 step_bytes(bool exists) const { return exists ? u32(this->line_bytes) : 0; }
    TILEWISE_DEVICE void load(Registers& to, int step, bool exists) const {
        const Bounded from = tile_memory(first, depth * this->line_bytes, step, exists);
        const u32 bytes = step_bytes(exists);
        TILEWISE_UNROLL
        for (int j = 0; j < kSteps; ++j) {
            TILEWISE_UNROLL
            for (int i = 0; i < kCount; ++i) {
                to.unit[i].step[j] = load_bounded<kAccessBytes>(from, offset[i], u32(j) * bytes);
            }
        }
    }
    TILEWISE_DEVICE void load_last(Registers& to, int step, bool exists, int k_left) const {
        const Bounded from = tile_memory(first, depth * this->line_bytes, step, exists);
        const u32 bytes = step_bytes(exists);
        TILEWISE_UNROLL
        for (int j = 0; j < kSteps; ++j) {
            TILEWISE_UNROLL
            for (int i = 0; i < kCount; ++i) {
                const u32 at = first_k(i) + j < k_left ? offset[i] : kOutside;
                to.unit[i].step[j] = load_bounded<kAccessBytes>(from, at, u32(j) * bytes);
            }
        }
    }
};

template <class Tile, int depth>
struct PlainTile : Tile {
    using typename Tile::Registers;
    static constexpr bool kDirect = false;
    static constexpr int kCopies = 0;

    TILEWISE_DEVICE PlainTile(const OperandView& view, Index row, Index k_begin) : Tile(view, row, k_begin) {}
    TILEWISE_DEVICE void load(Registers& to, int step, bool exists) const { Tile::load(to, step, exists ? depth : 0); }
    TILEWISE_DEVICE void load_last(Registers& to, int step, bool exists, int k_left) const {
        Tile::load(to, step, exists ? k_left : 0);
    }
};

// The bytes of a lane in a direct copy, of which the chip has copies of at most direct_bytes; 0 where there is none.
TILEWISE_DEVICE constexpr int direct_piece(int direct_bytes, int access_bytes, int tile_bytes, int threads) {
    if (direct_bytes == 16 && access_bytes == 16 && tile_bytes % (threads * 16) == 0) return 16;
    return direct_bytes >= 4 && access_bytes >= 4 && tile_bytes % (threads * 4) == 0 ? 4 : 0;
}

// The elements of an access of a tile that is turned around: at most `vector`, and so few that every thread has some.
TILEWISE_DEVICE constexpr int turn_vector(int vector, int elements, int steps, int threads) {
    while (vector > 1 && elements / steps / vector < threads) vector /= 2;
    return vector;
}

// `turned_reads`: the chip reads 16-bit elements turned around.
template <class T, int extent, int depth, bool along_k, int vector, int threads, int piece, bool turned_reads = false>
struct GemmTileChoice {
    static constexpr int kSteps = T::bytes == 1 ? 4 : kChunkBytes / T::bytes;
    static constexpr int kVector = turn_vector(vector, extent* depth, kSteps, threads);
    using type = BoundedTurn<T, typename MfmaTileChoice<T, extent, depth, false, kVector, threads>::type, depth>;
};
template <class T, int extent, int depth, int vector, int threads, int piece>
requires(T::bytes == 2 &&
         vector * T::bytes ==
             kChunkBytes) struct GemmTileChoice<T, extent, depth, false, vector, threads, piece, true> {
    using type = typename ChooseType<piece == kChunkBytes, DirectCrossed<T, extent, depth, threads>,
                                     CrossedTile<T, extent, depth, threads>>::type;
};
template <class T, int extent, int depth, int vector, int threads, int piece, bool turned_reads>
struct GemmTileChoice<T, extent, depth, true, vector, threads, piece, turned_reads> {
    using type = DirectTile<T, extent, depth, piece, threads>;
};
template <class T, int extent, int depth, int vector, int threads, bool turned_reads>
struct GemmTileChoice<T, extent, depth, true, vector, threads, 0, turned_reads> {
    using type = BoundedTile<T, extent, depth, vector, threads>;
};
template <class T, int extent, int depth, int threads, bool turned_reads>
requires(T::bytes < 4) struct GemmTileChoice<T, extent, depth, true, 1, threads, 0, turned_reads> {
    using type = PlainTile<UnalignedTile<T, extent, depth, true, threads>, depth>;
};

}  // namespace tilewise::hip
