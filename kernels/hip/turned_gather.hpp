// SPDX-License-Identifier: MIT
// The way of gathered tiles (../gpu/gather_tile.hpp) whose neighbours in memory are neighbours along the extent, elements of 16 or 32
// bits: MFMA wants 16 bytes along k, so a thread looks up `vector` elements at as many steps of k as these are, and turns them around in
// its registers (turned_tile.hpp). A thread keeps its steps within a tile, so that each is looked up once for all of its elements.
#pragma once
#include "../gpu/gather_tile.hpp"
#include "turned_tile.hpp"

namespace tilewise::hip {

template <class T, class Source, int extent, int depth, int vector, int threads>
struct TurnedGather {
    using Turned = TurnedTile<T, extent, depth, vector, threads>;  // has the same units
    using Layout = typename Turned::Layout;
    using Registers = typename Turned::Registers;
    using Count = typename Source::Count;
    static constexpr bool kAlongK = true;
    static constexpr int kBytes = Turned::kBytes, kCount = Turned::kCount, kRegisters = Turned::kRegisters;
    static_assert(threads % Turned::kAcross == 0, "a thread keeps its steps of k");

    const Source& source;
    Count k_begin;
    typename Source::Outer outers[kCount];

    TILEWISE_DEVICE TurnedGather(const Source& from, Index first, Index k) : source(from), k_begin(Count(k)) {
        TILEWISE_UNROLL
        for (int i = 0; i < kCount; ++i) outers[i] = source.outer(Count(first) + Count(Turned::element_of(i)));
    }

    TILEWISE_DEVICE void load(Registers& registers, int step, int k_left) const {
        const int first_k = Turned::chunk_of(0) * Turned::kSteps;
        TILEWISE_UNROLL
        for (int j = 0; j < Turned::kSteps; ++j) {
            const typename Source::Inner inner = source.inner(k_begin + Count(step) * depth + Count(first_k + j));
            const bool exists = first_k + j < k_left;
            TILEWISE_UNROLL
            for (int i = 0; i < kCount; ++i) {
                typename Turned::Access& access = registers.unit[i].step[j];
                access = zero_packet<Turned::kAccessBytes>();
                if (exists && Turned::has_unit(i) && source.valid(outers[i], inner) > 0) {
                    access = load_global<Turned::kAccessBytes>(Source::address(outers[i], inner));
                }
            }
        }
    }
    static TILEWISE_DEVICE void put(const Registers& registers, SharedAddress to) { Turned::put(registers, to); }
    TILEWISE_DEVICE void move(SharedAddress to, int step, int k_left) const {
        Registers registers;
        load(registers, step, k_left);
        put(registers, to);
    }
    // No copy turns them around: done on the spot.
    TILEWISE_DEVICE void copy(SharedAddress to, int step, int k_left) const { move(to, step, k_left); }
};

// Every tile comes to lie along k.
template <class T, class Source, int extent, int depth, bool along_k, int vector, int threads>
struct MfmaGatherChoice {
    using type = typename GatherChoice<T, Source, extent, depth, along_k, vector, threads>::type;
};
template <class T, class Source, int extent, int depth, int vector, int threads>
requires(T::bytes > 1) struct MfmaGatherChoice<T, Source, extent, depth, false, vector, threads> {
    using type = TurnedGather<T, Source, extent, depth, vector, threads>;
};

}  // namespace tilewise::hip
