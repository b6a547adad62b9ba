// SPDX-License-Identifier: MIT
// The way of an operand's tiles whose lines begin anywhere (vector_a or vector_b is one element of 8 or 16 bits), with the
// interface of OperandTile (operand_tile.hpp). A chunk of 16 bytes of shared memory comes from the two aligned chunks of
// global memory that hold it (unaligned_chunk.hpp). What lies outside the matrix, or beyond the end of k, is zero in shared
// memory.
#pragma once
#include "transposed_tile.hpp"
#include "unaligned_chunk.hpp"

namespace tilewise::cuda {

template <class T, int extent, int depth, bool k_contiguous, int threads>
struct UnalignedTile {
    static constexpr bool kAlongK = k_contiguous;
    static constexpr int kLines = k_contiguous ? extent : depth,
                         kLineBytes = (k_contiguous ? depth : extent) * T::bytes;
    using Layout = TileLayout<kLines, kLineBytes>;
    static constexpr int kBytes = Layout::kBytes;
    static constexpr int kPerLine = kLineBytes / kChunkBytes, kTotal = kLines * kPerLine;
    static constexpr int kCount = (kTotal + threads - 1) / threads;  // chunks of a thread
    static constexpr int kRegisters = kCount * 9;                    // two chunks, and what counts of them

    // Chunks that are on their way together where few registers are free.
    static constexpr int kBatch = kCount % 4 == 0 ? 4 : kCount % 2 == 0 ? 2 : 1;

    struct Registers {
        UnalignedChunk chunk[kCount];
    };

    const char* tile;  // its first element, at the first step of k
    Index line_bytes;  // from line to line
    int left;          // of the extent, from the tile's first row (or column) on, at most a tile

    TILEWISE_DEVICE UnalignedTile(const OperandView& view, Index first, Index k_begin) {
        line_bytes = view.line_stride * T::bytes;
        const Index begin = k_contiguous ? first * view.line_stride + k_begin : k_begin * view.line_stride + first;
        tile = static_cast<const char*>(view.data) + begin * T::bytes;
        left = view.extent - first < extent ? int(view.extent - first) : extent;
    }

    // The line of a thread's chunk i, and its first byte in it.
    static TILEWISE_DEVICE int line_of(int i) { return (thread_index() + i * threads) / kPerLine; }
    static TILEWISE_DEVICE int byte_of(int i) { return (thread_index() + i * threads) % kPerLine * kChunkBytes; }
    static TILEWISE_DEVICE bool has_chunk(int i) {
        return kTotal % threads == 0 || i + 1 < kCount || thread_index() + i * threads < kTotal;
    }

    TILEWISE_DEVICE void load_chunk(UnalignedChunk& chunk, int i, int step, int k_left) const {
        const int line = line_of(i), byte = byte_of(i);
        const int lines_left = k_contiguous ? left : k_left,
                  bytes_left = (k_contiguous ? k_left : left) * T::bytes - byte;
        const int inside = bytes_left < kChunkBytes ? bytes_left : kChunkBytes;
        const Index whole = Index(step) * depth * (k_contiguous ? T::bytes : line_bytes);
        chunk.load(tile + whole + line * line_bytes + byte, has_chunk(i) && line < lines_left ? inside : 0);
    }
    static TILEWISE_DEVICE void put_chunk(const UnalignedChunk& chunk, int i, SharedAddress to) {
        if (has_chunk(i)) store_shared<kChunkBytes>(to + Layout::byte_offset(line_of(i), byte_of(i)), chunk.joined());
    }

    // Tile number `step` of k into registers; of it k_left elements of k are there.
    TILEWISE_DEVICE void load(Registers& registers, int step, int k_left) const {
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) load_chunk(registers.chunk[i], i, step, k_left);
    }
    static TILEWISE_DEVICE void put(const Registers& registers, SharedAddress to) {
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) put_chunk(registers.chunk[i], i, to);
    }

    // Both steps at once, a batch at a time.
    TILEWISE_DEVICE void move(SharedAddress to, int step, int k_left) const {
        TILEWISE_ROLLED
        for (int first = 0; first < kCount; first += kBatch) {
            UnalignedChunk held[kBatch];
            TILEWISE_UNROLL
            for (int i = 0; i < kBatch; ++i) load_chunk(held[i], first + i, step, k_left);
            TILEWISE_UNROLL
            for (int i = 0; i < kBatch; ++i) put_chunk(held[i], first + i, to);
        }
    }
    // No copy shifts: done on the spot.
    TILEWISE_DEVICE void copy(SharedAddress to, int step, int k_left) const { move(to, step, k_left); }
};

// The same by asynchronous copies: aligned chunks go to a buffer of a ring as they lie, one more for every line than it needs, and
// `settle` shifts them together into the one tile that is multiplied.
template <class T, int extent, int depth, bool k_contiguous, int threads>
struct StagedTile : UnalignedTile<T, extent, depth, k_contiguous, threads> {
    using Base = UnalignedTile<T, extent, depth, k_contiguous, threads>;
    static constexpr int kSettledBytes = Base::kBytes;
    static constexpr int kRawPerLine = Base::kPerLine + 1, kRawLineBytes = kRawPerLine * kChunkBytes;
    static constexpr int kRawTotal = Base::kLines * kRawPerLine, kBytes = Base::kLines * kRawLineBytes;
    static constexpr int kRegisters = 0;
    struct Registers {};

    using Base::Base;

    TILEWISE_DEVICE const char* line_start(int line, int step) const {
        return this->tile + Index(step) * depth * (k_contiguous ? T::bytes : this->line_bytes) +
               line * this->line_bytes;
    }
    TILEWISE_DEVICE int valid_bytes(int line, int k_left) const {
        const int bytes = (k_contiguous ? k_left : this->left) * T::bytes;
        return line >= (k_contiguous ? this->left : k_left) ? 0 : bytes < Base::kLineBytes ? bytes : Base::kLineBytes;
    }

    TILEWISE_DEVICE void copy(SharedAddress to, int step, int k_left) const {
        TILEWISE_UNROLL
        for (int i = 0; i < (kRawTotal + threads - 1) / threads; ++i) {
            const int index = thread_index() + i * threads, line = index / kRawPerLine;
            if (kRawTotal % threads != 0 && index >= kRawTotal) continue;
            const char* start = line_start(line, step);
            const int skip = int(reinterpret_cast<u64>(start) % kChunkBytes);
            const int offset = (index - line * kRawPerLine) * kChunkBytes;
            const int end = valid_bytes(line, k_left) + skip;
            // What is outside is not read, so its address does not matter.
            copy_async<kChunkBytes>(to + index * kChunkBytes, start - skip + offset,
                                    end > skip && offset < end ? kChunkBytes : 0);
        }
    }

    TILEWISE_DEVICE void settle(SharedAddress from, SharedAddress to, int step, int k_left) const {
        TILEWISE_UNROLL
        for (int i = 0; i < Base::kCount; ++i) {
            if (!Base::has_chunk(i)) continue;
            const int line = Base::line_of(i), byte = Base::byte_of(i);
            const SharedAddress raw = from + line * kRawLineBytes + byte;
            UnalignedChunk chunk;
            chunk.first = load_shared<kChunkBytes>(raw), chunk.second = load_shared<kChunkBytes>(raw + kChunkBytes);
            chunk.skip = int(reinterpret_cast<u64>(line_start(line, step)) % kChunkBytes);
            chunk.valid = valid_bytes(line, k_left) - byte;
            Base::put_chunk(chunk, i, to);
        }
    }
};

// What tiles take beside the buffers that they are copied to.
template <class Tile>
inline constexpr int kSettledBytes = 0;
template <class Tile>
requires requires { Tile::kSettledBytes; }
inline constexpr int kSettledBytes<Tile> = Tile::kSettledBytes;

// How tiles of an operand of a product come to shared memory: those of single elements below 32 bits by chunks from anywhere.
template <class T, int extent, int depth, bool k_contiguous, int vector, int threads, bool async>
struct ProductTileChoice {
    using type = typename TileChoice<T, extent, depth, k_contiguous, vector, threads>::type;
};
template <class T, int extent, int depth, bool k_contiguous, int threads>
requires(T::bytes == 2 ||
         (T::bytes == 1 && k_contiguous)) struct ProductTileChoice<T, extent, depth, k_contiguous, 1, threads, false> {
    using type = UnalignedTile<T, extent, depth, k_contiguous, threads>;
};
template <class T, int extent, int depth, bool k_contiguous, int threads>
requires(T::bytes == 2 ||
         (T::bytes == 1 && k_contiguous)) struct ProductTileChoice<T, extent, depth, k_contiguous, 1, threads, true> {
    using type = StagedTile<T, extent, depth, k_contiguous, threads>;
};

}  // namespace tilewise::cuda
