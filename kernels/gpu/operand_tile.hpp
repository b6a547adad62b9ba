// SPDX-License-Identifier: MIT
// The way of an operand's tiles from global to shared memory, shared out among the threads of a block: each moves the
// accesses thread, thread + threads, ... of a tile, an access being `vector` elements along the contiguous axis. Either
// asynchronously or through registers, in two steps between which arithmetic fits. What lies outside the
// matrix, or beyond the end of k, is zero in shared memory and never read. A vector is wholly inside or outside: configs
// are only offered problems whose contiguous extents are multiples of it.
#pragma once
#include "packet.hpp"
#include "tile_layout.hpp"

namespace tilewise::gpu {

// An operand of the product seen as extent (m or n) by k. It is stored by lines: along k, or along the extent.
struct OperandView {
    const void* data;  // of the batch entry
    Index extent;      // m or n
    Index depth;       // k
    Index line_stride;
};

// Where a tile of it begins, and which pieces of its lines are a thread's.
template <class T, int extent, bool k_contiguous, int lines, int per_line, int threads>
struct TilePieces {
    static constexpr int kTotal = lines * per_line, kCount = (kTotal + threads - 1) / threads;  // of all, of a thread
    static constexpr bool kRegular = threads % per_line == 0;  // a thread keeps its place within lines

    const char* tile;  // its first element, at the first step of k
    Index line_bytes;  // from line to line
    int left;          // of the extent, from the tile's first row (or column) on, at most a tile

    TILEWISE_DEVICE TilePieces(const OperandView& view, Index first, Index k_begin) {
        line_bytes = view.line_stride * T::bytes;
        const Index begin = k_contiguous ? first * view.line_stride + k_begin : k_begin * view.line_stride + first;
        tile = static_cast<const char*>(view.data) + begin * T::bytes;
        left = view.extent - first < extent ? int(view.extent - first) : extent;
    }

    // The line of a thread's piece i, and which piece of it that is.
    static TILEWISE_DEVICE int line_of(int i) {
        if constexpr (kRegular) return thread_index() / per_line + i * (threads / per_line);
        return (thread_index() + i * threads) / per_line;
    }
    static TILEWISE_DEVICE int piece_of(int i) {
        if constexpr (kRegular) return thread_index() % per_line;
        return (thread_index() + i * threads) % per_line;
    }
    static TILEWISE_DEVICE bool has_piece(int i) {
        return kTotal % threads == 0 || i + 1 < kCount || thread_index() + i * threads < kTotal;
    }
};

TILEWISE_DEVICE constexpr int largest_divisor(int of, int most) {
    while (of % most != 0) --most;
    return most;
}

template <class T, int extent, int depth, bool k_contiguous, int vector, int threads>
struct OperandTile : TilePieces<T, extent, k_contiguous, k_contiguous ? extent : depth,
                                (k_contiguous ? depth : extent) / vector, threads> {
    static constexpr bool kAlongK = k_contiguous;
    static constexpr int kLines = k_contiguous ? extent : depth, kLineLength = k_contiguous ? depth : extent;
    using Layout = TileLayout<kLines, kLineLength * T::bytes>;
    static constexpr int kBytes = Layout::kBytes;
    static constexpr int kAccessBytes = vector * T::bytes;
    static_assert(kAccessBytes <= kChunkBytes && (vector & (vector - 1)) == 0, "an access is at most 16 bytes");
    static_assert(kLineLength % vector == 0, "a line is whole accesses");
    static constexpr bool kCanCopyAsync = kAccessBytes >= 4;
    static constexpr int kPerLine = kLineLength / vector;
    using Pieces = TilePieces<T, extent, k_contiguous, kLines, kPerLine, threads>;
    using Pieces::kCount, Pieces::kRegular, Pieces::Pieces, Pieces::has_piece, Pieces::left, Pieces::line_bytes,
        Pieces::line_of, Pieces::tile;

    static constexpr int kRegisters = kCount * (kAccessBytes < 4 ? 1 : kAccessBytes / 4);

    // Accesses that are on their way together where few registers are free.
    static constexpr int kMostMoving = 16;
    static constexpr int kBatch =
        kRegisters <= kMostMoving ? kCount : largest_divisor(kCount, kCount* kMostMoving / kRegisters);

    using Access = Packet<kAccessBytes>;
    struct Registers {
        Access access[kCount];
    };

    // The first element of access i in its line.
    static TILEWISE_DEVICE int element_of(int i) { return Pieces::piece_of(i) * vector; }
    TILEWISE_DEVICE bool is_inside(int i, int k_left) const {
        const int line = line_of(i), element = element_of(i);
        return k_contiguous ? line < left && element < k_left : line < k_left && element < left;
    }
    // The address of access i of a tile, and of the one after it from that: an addition for each keeps the registers
    // free that as many products of line numbers would take.
    TILEWISE_DEVICE const char* source(int i, int step) const {
        const Index line = k_contiguous ? line_of(i) : line_of(i) + Index(step) * depth;
        const Index element = k_contiguous ? element_of(i) + Index(step) * depth : element_of(i);
        return tile + line * line_bytes + element * T::bytes;
    }
    TILEWISE_DEVICE const char* next_source(const char* from, int i, int step) const {
        return kRegular ? from + threads / kPerLine * line_bytes : source(i + 1, step);
    }
    static TILEWISE_DEVICE u32 target(int i) { return Layout::byte_offset(line_of(i), element_of(i) * T::bytes); }

    // Tile number `step` of k into registers; of it k_left elements of k are there.
    TILEWISE_DEVICE void load(Registers& registers, int step, int k_left) const {
        const char* from = source(0, step);
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; from = next_source(from, i, step), ++i) {
            registers.access[i] = zero_packet<kAccessBytes>();
            if (has_piece(i) && is_inside(i, k_left)) {
                registers.access[i] = load_global<kAccessBytes>(from);
            }
        }
    }
    static TILEWISE_DEVICE void put(const Registers& registers, SharedAddress to) {
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) {
            if (has_piece(i)) store_shared<kAccessBytes>(to + target(i), registers.access[i]);
        }
    }

    // Both steps at once, a batch at a time.
    TILEWISE_DEVICE void move(SharedAddress to, int step, int k_left) const {
        TILEWISE_ROLLED
        for (int first = 0; first < kCount; first += kBatch) {
            Access held[kBatch];
            TILEWISE_UNROLL
            for (int i = 0; i < kBatch; ++i) {
                held[i] = zero_packet<kAccessBytes>();
                if (has_piece(first + i) && is_inside(first + i, k_left)) {
                    held[i] = load_global<kAccessBytes>(source(first + i, step));
                }
            }
            TILEWISE_UNROLL
            for (int i = 0; i < kBatch; ++i) {
                if (has_piece(first + i)) store_shared<kAccessBytes>(to + target(first + i), held[i]);
            }
        }
    }

    // By asynchronous copies. Accesses of less than 4 bytes have none: they are done on the spot.
    TILEWISE_DEVICE void copy(SharedAddress to, int step, int k_left) const {
        if constexpr (!kCanCopyAsync) return move(to, step, k_left);
        if constexpr (kCanCopyAsync) {
            const char* from = source(0, step);
            TILEWISE_UNROLL
            for (int i = 0; i < kCount; from = next_source(from, i, step), ++i) {
                if (!has_piece(i)) continue;
                // What is outside is not read, so its address does not matter.
                copy_async<kAccessBytes>(to + target(i), from, is_inside(i, k_left) ? kAccessBytes : 0);
            }
        }
    }
};

}  // namespace tilewise::gpu
