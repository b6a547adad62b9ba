// SPDX-License-Identifier: MIT
// The way of an operand's tiles whose lines begin anywhere (vector_a or vector_b is one element of 8 or 16 bits), with the
// interface of OperandTile (operand_tile.hpp). A chunk of 16 bytes of shared memory comes from the two aligned chunks of
// global memory that hold it (unaligned_chunk.hpp). What lies outside the matrix, or beyond the end of k, is zero in shared
// memory.
#pragma once
#include "transposed_tile.hpp"
#include "unaligned_chunk.hpp"

namespace tilewise::gpu {

template <class T, int extent, int depth, bool k_contiguous, int threads>
struct UnalignedTile : TilePieces<T, extent, k_contiguous, k_contiguous ? extent : depth,
                                  (k_contiguous ? depth : extent) * T::bytes / kChunkBytes, threads> {
    static constexpr bool kAlongK = k_contiguous;
    static constexpr int kLines = k_contiguous ? extent : depth,
                         kLineBytes = (k_contiguous ? depth : extent) * T::bytes;
    using Layout = TileLayout<kLines, kLineBytes>;
    static constexpr int kBytes = Layout::kBytes;
    static constexpr int kPerLine = kLineBytes / kChunkBytes;
    using Pieces = TilePieces<T, extent, k_contiguous, kLines, kPerLine, threads>;  // chunks
    using Pieces::kCount, Pieces::kRegular, Pieces::kTotal, Pieces::has_piece, Pieces::left, Pieces::line_bytes,
        Pieces::line_of, Pieces::tile;
    static constexpr int kRegisters = kCount * 9;  // two chunks, and what counts of them

    // Chunks that are on their way together where few registers are free.
    static constexpr int kBatch = kCount % 4 == 0 ? 4 : kCount % 2 == 0 ? 2 : 1;

    struct Registers {
        UnalignedChunk chunk[kCount];
        bool whole;  // nothing of the tile lies outside the matrix
    };

    InnerChunks inner;  // of the batch entry's matrix

    TILEWISE_DEVICE UnalignedTile(const OperandView& view, Index first, Index k_begin)
        : Pieces(view, first, k_begin), inner(InnerChunks::of(view.data, bytes_of(view))) {}
    static TILEWISE_DEVICE Index bytes_of(const OperandView& view) {
        const Index lines = k_contiguous ? view.extent : view.depth, length = k_contiguous ? view.depth : view.extent;
        return ((lines - 1) * view.line_stride + length) * T::bytes;
    }

    // The first byte of chunk i in its line.
    static TILEWISE_DEVICE int byte_of(int i) { return Pieces::piece_of(i) * kChunkBytes; }
    // The address of chunk i, and of the one after it from that, by an addition.
    TILEWISE_DEVICE const char* source(int i, int step) const {
        const Index whole = Index(step) * depth * (k_contiguous ? T::bytes : line_bytes);
        return tile + whole + line_of(i) * line_bytes + byte_of(i);
    }
    TILEWISE_DEVICE const char* next_source(const char* from, int i, int step) const {
        return kRegular ? from + threads / kPerLine * line_bytes : source(i + 1, step);
    }
    // Chunk i has so many bytes inside the matrix.
    TILEWISE_DEVICE int valid_of(int i, int k_left) const {
        const int bytes = (k_contiguous ? k_left : left) * T::bytes - byte_of(i);
        const bool inside = has_piece(i) && line_of(i) < (k_contiguous ? left : k_left);
        return !inside ? 0 : bytes < kChunkBytes ? bytes : kChunkBytes;
    }

    static TILEWISE_DEVICE void store_chunk(const Packet<kChunkBytes>& chunk, int i, SharedAddress to) {
        store_shared<kChunkBytes>(to + Layout::byte_offset(line_of(i), byte_of(i)), chunk);
    }
    static TILEWISE_DEVICE void put_chunk(const UnalignedChunk& chunk, int i, SharedAddress to) {
        if (has_piece(i)) store_chunk(chunk.joined(), i, to);
    }

    // Tile number `step` of k into registers; of it k_left elements of k are there.
    TILEWISE_DEVICE void load(Registers& registers, int step, int k_left) const {
        const char* from = source(0, step);
        registers.whole = kTotal % threads == 0 && left == extent && k_left >= depth;
        if (registers.whole) {
            TILEWISE_UNROLL
            for (int i = 0; i < kCount; from = next_source(from, i, step), ++i) {
                registers.chunk[i].template load_whole<T::bytes>(from, inner);
            }
        } else {
            TILEWISE_UNROLL
            for (int i = 0; i < kCount; from = next_source(from, i, step), ++i) {
                registers.chunk[i].template load<T::bytes>(from, valid_of(i, k_left), inner);
            }
        }
    }
    static TILEWISE_DEVICE void put(const Registers& registers, SharedAddress to) {
        if (registers.whole) {
            TILEWISE_UNROLL
            for (int i = 0; i < kCount; ++i) store_chunk(registers.chunk[i].joined_whole(), i, to);
        } else {
            TILEWISE_UNROLL
            for (int i = 0; i < kCount; ++i) put_chunk(registers.chunk[i], i, to);
        }
    }

    // Both steps at once, a batch at a time.
    TILEWISE_DEVICE void move(SharedAddress to, int step, int k_left) const {
        TILEWISE_ROLLED
        for (int first = 0; first < kCount; first += kBatch) {
            UnalignedChunk held[kBatch];
            TILEWISE_UNROLL
            for (int i = 0; i < kBatch; ++i) {
                held[i].template load<T::bytes>(source(first + i, step), valid_of(first + i, k_left), inner);
            }
            TILEWISE_UNROLL
            for (int i = 0; i < kBatch; ++i) put_chunk(held[i], first + i, to);
        }
    }
    // No copy shifts: done on the spot.
    TILEWISE_DEVICE void copy(SharedAddress to, int step, int k_left) const { move(to, step, k_left); }
};

// How tiles of an operand of a product come to shared memory: those of single elements below 32 bits by chunks from anywhere.
template <class T, int extent, int depth, bool k_contiguous, int vector, int threads>
struct ProductTileChoice {
    using type = typename TileChoice<T, extent, depth, k_contiguous, vector, threads>::type;
};
template <class T, int extent, int depth, bool k_contiguous, int threads>
requires(T::bytes == 2 ||
         (T::bytes == 1 && k_contiguous)) struct ProductTileChoice<T, extent, depth, k_contiguous, 1, threads> {
    using type = UnalignedTile<T, extent, depth, k_contiguous, threads>;
};

}  // namespace tilewise::gpu
