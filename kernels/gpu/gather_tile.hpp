// SPDX-License-Identifier: MIT
// The way of tiles whose elements are looked up by a source (gather_source.hpp) from global to shared memory, with the
// interface of OperandTile (operand_tile.hpp): threads share out the accesses of a tile, `vector` elements along the axis in
// which memory is contiguous. The side of the source that does not change from step to step is worked out once per tile, the
// other one once per step.
//   GatherTile       tiles lie in shared memory as they do in global memory
//   UnalignedGather  the same for 16-bit elements that begin anywhere: chunks of 16 bytes, each from two aligned ones
//   TurnedBytes      8-bit elements that are neighbours along the extent, for matrix units, which want neighbours along k
#pragma once
#include "gather_source.hpp"
#include "transposed_tile.hpp"
#include "unaligned_chunk.hpp"

namespace tilewise::gpu {

// Which accesses of a tile are whose.
template <class T, class Source, int extent, int depth, bool along_k, int vector, int threads>
struct GatherAccesses {
    static constexpr bool kAlongK = along_k;
    static constexpr int kLines = along_k ? extent : depth, kLineLength = along_k ? depth : extent;
    using Layout = TileLayout<kLines, kLineLength * T::bytes>;
    static constexpr int kBytes = Layout::kBytes;
    static constexpr int kAccessBytes = vector * T::bytes;
    // A thread keeps its places within lines (kAcross of them) and takes every kLineStep-th line.
    static constexpr int kPerLine = kLineLength / vector;
    static constexpr int kAcross = kPerLine > threads ? kPerLine / threads : 1;
    static constexpr int kLineStep = kPerLine > threads ? 1 : threads / kPerLine;
    static constexpr int kDown = (kLines + kLineStep - 1) / kLineStep, kCount = kAcross * kDown;
    static_assert(kAccessBytes <= kChunkBytes && kLineLength % vector == 0, "a line is whole accesses");
    static_assert(kPerLine > threads ? kPerLine % threads == 0 : threads % kPerLine == 0,
                  "threads divide lines evenly");
    static constexpr int kOuters = along_k ? kDown : kAcross, kInners = along_k ? kAcross : kDown;
    using Count = typename Source::Count;

    const Source& source;
    Count k_begin;
    typename Source::Outer outers[kOuters];

    TILEWISE_DEVICE GatherAccesses(const Source& from, Index first, Index k) : source(from), k_begin(Count(k)) {
        TILEWISE_UNROLL
        for (int i = 0; i < kOuters; ++i)
            outers[i] = source.outer(Count(first) + Count(along_k ? line_of(i) : element_of(i)));
    }

    static TILEWISE_DEVICE int line_of(int down) {
        return kPerLine > threads ? down : thread_index() / kPerLine + down * kLineStep;
    }
    static TILEWISE_DEVICE int element_of(int across) {
        return kPerLine > threads ? (thread_index() + across * threads) * vector : thread_index() % kPerLine * vector;
    }
    static TILEWISE_DEVICE bool has_line(int down) { return kLines % kLineStep == 0 || line_of(down) < kLines; }
    static TILEWISE_DEVICE u32 target(int down, int across) {
        return Layout::byte_offset(line_of(down), element_of(across) * T::bytes);
    }

    // Calls f(access, down, across, outer, inner, whether k goes so far) for every access of tile number `step`.
    template <class F>
    TILEWISE_DEVICE void each(int step, int k_left, F&& f) const {
        const Count k = k_begin + Count(step) * depth;
        if constexpr (along_k) {
            TILEWISE_UNROLL
            for (int j = 0; j < kAcross; ++j) {
                const typename Source::Inner inner = source.inner(k + Count(element_of(j)));
                const bool exists = element_of(j) < k_left;
                TILEWISE_UNROLL
                for (int i = 0; i < kDown; ++i) {
                    f(j * kDown + i, i, j, outers[i], inner, exists);
                }
            }
        } else {
            TILEWISE_UNROLL
            for (int i = 0; i < kDown; ++i) {
                const typename Source::Inner inner = source.inner(k + Count(line_of(i)));
                const bool exists = line_of(i) < k_left;
                TILEWISE_UNROLL
                for (int j = 0; j < kAcross; ++j) {
                    f(j * kDown + i, i, j, outers[j], inner, exists);
                }
            }
        }
    }
};

template <class T, class Source, int extent, int depth, bool along_k, int vector, int threads>
struct GatherTile : GatherAccesses<T, Source, extent, depth, along_k, vector, threads> {
    using Accesses = GatherAccesses<T, Source, extent, depth, along_k, vector, threads>;
    using Accesses::Accesses, Accesses::kAccessBytes, Accesses::kCount, Accesses::kDown, Accesses::each,
        Accesses::has_line, Accesses::target, Accesses::source;
    static constexpr bool kCanCopyAsync = kAccessBytes >= 4;
    static constexpr int kRegisters = kCount * (kAccessBytes < 4 ? 1 : kAccessBytes / 4);

    using Access = Packet<kAccessBytes>;
    struct Registers {
        Access access[kCount];
    };

    // Calls f(access, down, across, address, whether it is inside) for every access of tile number `step`.
    template <class F>
    TILEWISE_DEVICE void each_address(int step, int k_left, F&& f) const {
        each(step, k_left, [&](int at, int down, int across, const auto& outer, const auto& inner, bool exists) {
            f(at, down, across, Source::address(outer, inner), exists && source.is_inside(outer, inner));
        });
    }

    TILEWISE_DEVICE void load(Registers& registers, int step, int k_left) const {
        each_address(step, k_left, [&](int at, int down, int, const char* from, bool inside) {
            registers.access[at] = zero_packet<kAccessBytes>();
            if (has_line(down) && inside) registers.access[at] = load_global<kAccessBytes>(from);
        });
    }
    static TILEWISE_DEVICE void put(const Registers& registers, SharedAddress to) {
        TILEWISE_UNROLL
        for (int at = 0; at < kCount; ++at) {
            const int down = at % kDown, across = at / kDown;
            if (has_line(down)) store_shared<kAccessBytes>(to + target(down, across), registers.access[at]);
        }
    }
    // Both at once.
    TILEWISE_DEVICE void move(SharedAddress to, int step, int k_left) const {
        each_address(step, k_left, [&](int, int down, int across, const char* from, bool inside) {
            if (!has_line(down)) return;
            Access access = zero_packet<kAccessBytes>();
            if (inside) access = load_global<kAccessBytes>(from);
            store_shared<kAccessBytes>(to + target(down, across), access);
        });
    }
    TILEWISE_DEVICE void copy(SharedAddress to, int step, int k_left) const {
        if constexpr (!kCanCopyAsync) return move(to, step, k_left);
        if constexpr (kCanCopyAsync) {
            each_address(step, k_left, [&](int, int down, int across, const char* from, bool inside) {
                // What is outside is not read, so its address does not matter.
                if (has_line(down))
                    copy_async<kAccessBytes>(to + target(down, across), from, inside ? kAccessBytes : 0);
            });
        }
    }
};

// The source knows its tensor's chunks (`inner_chunks`) and how much of a chunk exists (`valid`). Nothing that is not the
// tensor's is read.
template <class T, class Source, int extent, int depth, bool along_k, int threads>
struct UnalignedGather : GatherAccesses<T, Source, extent, depth, along_k, kChunkBytes / T::bytes, threads> {
    using Accesses = GatherAccesses<T, Source, extent, depth, along_k, kChunkBytes / T::bytes, threads>;
    using Accesses::Accesses, Accesses::kCount, Accesses::kDown, Accesses::each, Accesses::has_line, Accesses::target,
        Accesses::source;
    static constexpr int kRegisters = kCount * 9;  // two chunks, and how much of them counts

    struct Registers {
        UnalignedChunk chunk[kCount];
    };

    TILEWISE_DEVICE void load(Registers& registers, int step, int k_left) const {
        each(step, k_left, [&](int at, int down, int, const auto& outer, const auto& inner, bool exists) {
            const int valid = exists && has_line(down) ? source.valid(outer, inner) : 0;
            registers.chunk[at].template load<T::bytes>(Source::address(outer, inner), valid, source.inner_chunks);
        });
    }
    static TILEWISE_DEVICE void put(const Registers& registers, SharedAddress to) {
        TILEWISE_UNROLL
        for (int at = 0; at < kCount; ++at) {
            const int down = at % kDown, across = at / kDown;
            if (has_line(down)) store_shared<kChunkBytes>(to + target(down, across), registers.chunk[at].joined());
        }
    }
    TILEWISE_DEVICE void move(SharedAddress to, int step, int k_left) const {
        Registers registers;
        load(registers, step, k_left);
        put(registers, to);
    }
    // No copy shifts: done on the spot.
    TILEWISE_DEVICE void copy(SharedAddress to, int step, int k_left) const { move(to, step, k_left); }
};

// Elements one by one, four steps of k to a word; neighbouring threads take neighbours along the extent.
template <class T, class Source, int extent, int depth, int threads>
struct TurnedBytes {
    static_assert(T::bytes == 1, "elements of 8 bits");
    static constexpr bool kAlongK = true;
    static constexpr int kSteps = 4;
    using Layout = TileLayout<extent, depth>;
    static constexpr int kBytes = Layout::kBytes, kTotal = extent * depth / kSteps;
    static constexpr int kCount = (kTotal + threads - 1) / threads, kRegisters = kCount;
    struct Registers {
        u32 word[kCount];
    };

    using Count = typename Source::Count;

    const Source& source;
    Count first, k_begin;

    TILEWISE_DEVICE TurnedBytes(const Source& from, Index begin, Index k)
        : source(from), first(Count(begin)), k_begin(Count(k)) {}

    static TILEWISE_DEVICE int row_of(int i) { return (thread_index() + i * threads) % extent; }
    static TILEWISE_DEVICE int k_of(int i) { return (thread_index() + i * threads) / extent * kSteps; }
    static TILEWISE_DEVICE bool has_word(int i) {
        return kTotal % threads == 0 || thread_index() + i * threads < kTotal;
    }

    TILEWISE_DEVICE u32 word_of(int i, int step, int k_left) const {
        u32 word = 0;
        const typename Source::Outer outer = source.outer(first + Count(row_of(i)));
        TILEWISE_UNROLL
        for (int j = 0; j < kSteps; ++j) {
            const int k = k_of(i) + j;
            if (!has_word(i) || k >= k_left) continue;
            const typename Source::Inner inner = source.inner(k_begin + Count(step) * depth + Count(k));
            if (!source.is_inside(outer, inner)) continue;
            word |= u32(load_global<1>(Source::address(outer, inner)).value) << (8 * j);
        }
        return word;
    }
    static TILEWISE_DEVICE void put_word(SharedAddress to, int i, u32 word) {
        if (has_word(i)) store_shared<4>(to + Layout::byte_offset(row_of(i), k_of(i)), {{word}});
    }
    TILEWISE_DEVICE void load(Registers& registers, int step, int k_left) const {
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) registers.word[i] = word_of(i, step, k_left);
    }
    static TILEWISE_DEVICE void put(const Registers& registers, SharedAddress to) {
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) put_word(to, i, registers.word[i]);
    }
    TILEWISE_DEVICE void move(SharedAddress to, int step, int k_left) const {
        TILEWISE_ROLLED
        for (int i = 0; i < kCount; ++i) put_word(to, i, word_of(i, step, k_left));
    }
    TILEWISE_DEVICE void copy(SharedAddress to, int step, int k_left) const { move(to, step, k_left); }
};

// As the arithmetic needs it.
template <class T, class Source, int extent, int depth, bool along_k, int vector, int threads>
struct GatherChoice {
    using type = GatherTile<T, Source, extent, depth, along_k, vector, threads>;
};
template <class T, class Source, int extent, int depth, bool along_k, int threads>
requires(Source::kUnaligned) struct GatherChoice<T, Source, extent, depth, along_k, 1, threads> {
    using type = UnalignedGather<T, Source, extent, depth, along_k, threads>;
};
template <class T, class Source, int extent, int depth, int vector, int threads>
requires(T::bytes == 1) struct GatherChoice<T, Source, extent, depth, false, vector, threads> {
    using type = TurnedBytes<T, Source, extent, depth, threads>;
};

}  // namespace tilewise::gpu
