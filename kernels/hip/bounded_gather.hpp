// SPDX-License-Identifier: MIT
// The ways of tiles whose elements are looked up (bounded_source.hpp) to shared memory, for the loops of mfma_loop.hpp: through registers,
// as straight code. What the lanes of a tile have alike along the extent is worked out once, the rest once a step of k.
//   GatheredLines  neighbours in memory are neighbours along k, or no neighbours are asked for; of channels that are counted in whole
//                  chunks, the elements of a chunk come one by one
//   GatheredTurn   neighbours lie across k: a lane looks up `vector` elements at as many steps of k as a chunk has, and turns them around.
//                  All lanes of a wave take the same chunk along k, where the extent is long enough: that is looked up once for all.
#pragma once
#include "bounded_source.hpp"
#include "bounded_tile.hpp"

namespace tilewise::hip {

template <class T, class Source, int extent, int depth, int vector, int threads>
struct GatheredLines {
    static constexpr bool kAlongK = true, kDirect = false, kWhole = Source::kWholeChunks;
    using Layout = TileLayout<extent, depth * T::bytes>;
    using Far = typename Source::Far;
    using Count = typename Source::Count;
    using Offset = typename Source::Offset;
    static constexpr int kVector = kWhole ? kChunkBytes / T::bytes : vector, kLoads = kWhole ? kVector : 1;
    static constexpr int kBytes = Layout::kBytes, kCopies = 0, kAccessBytes = kVector * T::bytes;
    static constexpr int kLoadBytes = kAccessBytes / kLoads;
    static constexpr int kPerLine = depth / kVector, kLineStep = threads / kPerLine;
    static constexpr int kCount = (extent + kLineStep - 1) / kLineStep;
    static constexpr int kRegisters = kCount * kLoads * (kLoadBytes < 4 ? 1 : kLoadBytes / 4);
    static_assert(kAccessBytes <= kChunkBytes && depth % kVector == 0 && threads % kPerLine == 0,
                  "a thread keeps its place within lines");
    // After eight lines chunks are exchanged alike.
    static constexpr bool kEven = kLineStep % kBankChunks == 0 && extent % kLineStep == 0;

    struct Registers {
        Packet<kLoadBytes> load[kCount][kLoads];
    };

    const Source& source;
    Count first, k_begin;
    typename Source::Outer outers[kCount];

    TILEWISE_DEVICE GatheredLines(const Source& from, Index begin, Index k)
        : source(from), first(Count(begin)), k_begin(Count(k)) {
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) outers[i] = source.outer(first, first + Count(line_of(i)));
    }
    static TILEWISE_DEVICE int line_of(int i) { return thread_index() / kPerLine + i * kLineStep; }
    static TILEWISE_DEVICE int element() { return thread_index() % kPerLine * kVector; }
    static TILEWISE_DEVICE bool has_line(int i) { return extent % kLineStep == 0 || line_of(i) < extent; }
    static TILEWISE_DEVICE u32 target(int i) {
        if constexpr (kEven) {
            return Layout::byte_offset(line_of(0), element() * T::bytes) + u32(i * kLineStep * depth * T::bytes);
        } else {
            return Layout::byte_offset(line_of(i), element() * T::bytes);
        }
    }

    template <bool last>
    TILEWISE_DEVICE void load_step(Registers& to, int step, bool exists, int k_left) const {
        exists = gpu::uniform(exists);  // for the compiler, which does not always see it
        const Count k = k_begin + Count(step) * depth;
        const auto from = source.memory(first, k, exists);
        const typename Source::Inner inner = source.inner(k, k + Count(element()));
        const bool inside = !last || element() < k_left;
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) {
            Offset at = source.offset(outers[i], inner);
            if (last || extent % kLineStep != 0) at = inside && has_line(i) ? at : Far::kNowhere;
            TILEWISE_UNROLL
            for (int e = 0; e < kLoads; ++e) {
                Offset part = at;
                if constexpr (kWhole) {
                    part = at != Far::kNowhere && e * T::bytes < Source::left(inner) ? at + Offset(e * T::bytes)
                                                                                     : Far::kNowhere;
                }
                to.load[i][e] = Far::template load<kLoadBytes>(from, part);
            }
        }
    }
    TILEWISE_DEVICE void load(Registers& to, int step, bool exists) const { load_step<false>(to, step, exists, depth); }
    TILEWISE_DEVICE void load_last(Registers& to, int step, bool exists, int k_left) const {
        load_step<true>(to, step, exists, k_left);
    }
    static TILEWISE_DEVICE void put(const Registers& from, SharedAddress to) {
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) {
            if (!has_line(i)) continue;
            if constexpr (kWhole) {
                static_assert(T::bytes == 2);
                Packet<kChunkBytes> chunk;
                TILEWISE_UNROLL
                for (int w = 0; w < kLoads / 2; ++w) {
                    chunk.words[w] = u32(from.load[i][2 * w].value) | u32(from.load[i][2 * w + 1].value) << 16;
                }
                store_shared<kChunkBytes>(to + target(i), chunk);
            } else {
                store_shared<kAccessBytes>(to + target(i), from.load[i][0]);
            }
        }
    }
};

// Of `vector` elements at a time so many that every wave has its own chunk along k, and every thread some elements.
TILEWISE_DEVICE constexpr int wave_vector(int vector, int extent, int chunks, int threads) {
    while (vector > 1 && (extent / vector < kArchLanes || chunks * (extent / vector) < threads)) vector /= 2;
    return vector;
}

template <class T, class Source, int extent, int depth, int vector, int threads>
struct GatheredTurn {
    static constexpr bool kAlongK = true, kDirect = false;
    using Layout = TileLayout<extent, depth * T::bytes>;
    using Far = typename Source::Far;
    using Count = typename Source::Count;
    using Offset = typename Source::Offset;
    static constexpr int kSteps = kChunkBytes / T::bytes, kChunks = depth / kSteps;
    static constexpr int kVector = wave_vector(vector, extent, kChunks, threads), kPerChunk = extent / kVector;
    static constexpr int kTotal = kChunks * kPerChunk, kCount = (kTotal + threads - 1) / threads;
    static constexpr int kBytes = Layout::kBytes, kCopies = 0, kAccessBytes = kVector * T::bytes;
    static constexpr int kRegisters = kCount * kSteps * (kAccessBytes < 4 ? 1 : kAccessBytes / 4);
    static constexpr int kRun = Source::kRun < kSteps ? Source::kRun : kSteps;
    static constexpr Offset kNowhere = Far::kNowhere;
    static constexpr bool kTogether = kPerChunk % kArchLanes == 0;  // a wave has one chunk along k
    static constexpr int kFoundTogether = Source::kNeighbours > 1 ? Source::kNeighbours : kRun;  // steps of k
    static_assert(depth % kSteps == 0 && extent % kVector == 0);

    using Access = Packet<kAccessBytes>;
    struct Unit {
        Access step[kSteps];
    };
    struct Registers {
        Unit unit[kCount];
    };

    const Source& source;
    Count first, k_begin;
    typename Source::Outer outers[kCount];

    TILEWISE_DEVICE GatheredTurn(const Source& from, Index begin, Index k)
        : source(from), first(Count(begin)), k_begin(Count(k)) {
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) outers[i] = source.outer(first, first + Count(element_of(i)));
    }
    static TILEWISE_DEVICE int chunk_of(int i) {
        if constexpr (kTogether) return (warp_index() * kArchLanes + i * threads) / kPerChunk;
        return (thread_index() + i * threads) / kPerChunk;
    }
    static TILEWISE_DEVICE int element_of(int i) { return (thread_index() + i * threads) % kPerChunk * kVector; }
    static TILEWISE_DEVICE bool has_unit(int i) {
        return kTotal % threads == 0 || i + 1 < kCount || thread_index() + i * threads < kTotal;
    }

    template <bool last>
    TILEWISE_DEVICE void load_step(Registers& to, int step, bool exists, int k_left) const {
        exists = gpu::uniform(exists);
        const Count k = k_begin + Count(step) * depth;
        Count k_there = k;
        const Offset run_bytes = kTogether ? uniform(source.run_bytes()) : source.run_bytes();
        const auto from = source.memory(first, k, exists);
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) {
            const int first_k = chunk_of(i) * kSteps;
            typename Source::Inner inner;
            TILEWISE_UNROLL
            for (int run = 0; run < kSteps; run += kRun) {
                if (run % kFoundTogether == 0) {
                    if (i > 0 || run > 0) after_loads(k_there);
                    inner = source.inner(k, k_there + Count(first_k + run));
                } else if constexpr (Source::kNeighbours > 1) {
                    inner = source.after(inner);
                }
                const Offset at = kTogether ? source.lane_offset(outers[i], inner) : source.offset(outers[i], inner);
                const Offset together = kTogether ? uniform(source.common(inner)) : 0;
                TILEWISE_UNROLL
                for (int j = 0; j < kRun; ++j) {
                    const bool there =
                        has_unit(i) & source.has(inner, j) & (!last || first_k + run + j < k_left) & (at != kNowhere);
                    const Offset more = Offset(j) * run_bytes;
                    Access& access = to.unit[i].step[run + j];
                    if constexpr (kTogether) {
                        const Offset common = exists ? together + more : 0;
                        access = Far::template load<kAccessBytes>(from, there ? at : kNowhere, common);
                    } else {
                        access = Far::template load<kAccessBytes>(from, there ? at + more : kNowhere);
                    }
                }
            }
        }
    }
    TILEWISE_DEVICE void load(Registers& to, int step, bool exists) const { load_step<false>(to, step, exists, depth); }
    TILEWISE_DEVICE void load_last(Registers& to, int step, bool exists, int k_left) const {
        load_step<true>(to, step, exists, k_left);
    }

    // The word of an access that holds its element number e.
    static TILEWISE_DEVICE u32 word_of(const Access& access, int e) {
        if constexpr (kAccessBytes < 4) {
            return access.value;
        } else {
            return access.words[e * T::bytes / 4];
        }
    }
    // Word number w of the chunk of element e.
    static TILEWISE_DEVICE u32 turned(const Unit& unit, int e, int w) {
        if constexpr (T::bytes == 4) {
            return word_of(unit.step[w], e);
        } else if constexpr (T::bytes == 2) {
            const u32 low = word_of(unit.step[2 * w], e), high = word_of(unit.step[2 * w + 1], e);
            return e % 2 == 0 ? low_halves(low, high) : high_halves(low, high);
        } else {
            const u32 words[4] = {word_of(unit.step[4 * w], e), word_of(unit.step[4 * w + 1], e),
                                  word_of(unit.step[4 * w + 2], e), word_of(unit.step[4 * w + 3], e)};
            return gather_bytes(words, e % 4);
        }
    }
    static TILEWISE_DEVICE void put(const Registers& from, SharedAddress to) {
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) {
            if (!has_unit(i)) continue;
            TILEWISE_UNROLL
            for (int e = 0; e < kVector; ++e) {
                Packet<kChunkBytes> chunk;
                TILEWISE_UNROLL
                for (int w = 0; w < kChunkBytes / 4; ++w) chunk.words[w] = turned(from.unit[i], e, w);
                store_shared<kChunkBytes>(to + Layout::offset(element_of(i) + e, chunk_of(i)), chunk);
            }
        }
    }
};

// A thread has as many lines of single elements, whose places have no room in registers where they count in 64 bits.
template <class Source, bool along_k, int vector>
inline constexpr bool kGathersLines = along_k && (!Source::kWide || vector > 1 || Source::kWholeChunks);
template <class T, class Source, int extent, int depth, bool along_k, int vector, int threads>
using BoundedGather =
    typename Either<kGathersLines<Source, along_k, vector>, GatheredLines<T, Source, extent, depth, vector, threads>,
                    GatheredTurn<T, Source, extent, depth, vector, threads>>::type;

}  // namespace tilewise::hip
