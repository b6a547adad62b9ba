// SPDX-License-Identifier: MIT
// How the partial sums of a tile meet that several blocks share (StreamWalk of work_order.hpp). Blocks put the sums of a piece
// that does not begin the tile into their slot of the workspace and raise their flag; who has the tile's first step finishes it.
//   linear  it adds up the slots in the order of k
//   tree    neighbours in pairs, then pairs of pairs: blocks add what others have before they pass it on
//   atomic  all add to the slot of the last block, in any order
// A block has at most one piece that does not begin its tile, so a slot and a flag are used once in a launch.
//
// Workspace   for each block a slot of tile_m x tile_n sums, then for each block kFlagBytes of flags.
// Flags       raised means kRaised, a number of 64 bits that nothing else leaves behind, and who waits for a flag takes it down:
//             so the workspace needs no clearing, neither at its first use nor between launches.
// Registers   go to the slot as they are, 16 bytes of neighbouring threads side by side.
#pragma once
#include "../common/stream_slots.hpp"
#include "packet.hpp"
#include "work_order.hpp"

namespace tilewise::gpu {

// Threads that put sums together (a warpgroup, or the block): which of the block's groups, how they wait for each other.
template <int group_threads, int groups, int own_sums>
struct StreamShape {
    static constexpr int kThreads = group_threads, kGroups = groups, kSums = own_sums;  // sums of a thread
    static constexpr Index kGroupBytes = Index(kThreads) * kSums * 4, kSlotBytes = kGroupBytes * kGroups;
    static_assert(kSums % 4 == 0 && kGroups * sizeof(u64) <= kFlagBytes);
};

template <StreamK method, class Shape, class Sum, class Sync>
struct StreamSums {
    static constexpr u64 kRaised = 0x9d3f7a6e51c208b4ull;

    char* workspace;
    u32 blocks, position;
    int group, thread;  // of the group
    Sync sync;          // all threads of the group

    // Takes the sums of a piece; true where they have become those of the whole tile.
    template <class At>
    TILEWISE_DEVICE bool combine(const Work& work, At&& sum) const {
        if (work.sharers == 1) return true;
        if constexpr (method == StreamK::linear) return combine_linear(work, sum);
        if constexpr (method == StreamK::tree) return combine_tree(work, sum);
        return combine_atomic(work, sum);
    }

private:
    template <class At>
    TILEWISE_DEVICE bool combine_linear(const Work& work, At&& sum) const {
        if (work.index > 0) {
            put(position, sum);
            raise(position);
            return false;
        }
        TILEWISE_ROLLED
        for (u32 other = 1; other < work.sharers; ++other) {
            wait(position + other * work.apart, 0);
            add(position + other * work.apart, sum);
        }
        return true;
    }

    template <class At>
    TILEWISE_DEVICE bool combine_tree(const Work& work, At&& sum) const {
        TILEWISE_ROLLED
        for (u32 distance = 1; distance < work.sharers; distance *= 2) {
            if (work.index & distance) {
                put(position, sum);
                raise(position);
                return false;
            }
            if (work.index + distance < work.sharers) {
                wait(position + distance * work.apart, 0);
                add(position + distance * work.apart, sum);
            }
        }
        return true;
    }

    // The last block's slot is where sums meet; it writes its own there, those before it add to them.
    template <class At>
    TILEWISE_DEVICE bool combine_atomic(const Work& work, At&& sum) const {
        const u32 last = work.sharers - 1, meeting = position + (last - work.index) * work.apart;
        if (work.index == 0) {
            wait(meeting, last - 1);
            add(meeting, sum);
            return true;
        }
        if (work.index == last) {
            put(meeting, sum);
            raise(meeting);
            return false;
        }
        if (thread == 0) {
            while (load_acquire(flag(meeting)) - kRaised >= work.sharers) {
            }
        }
        sync();
        add_to(meeting, sum);
        publish();
        sync();
        if (thread == 0) add_release(flag(meeting), 1);
        return false;
    }

    TILEWISE_DEVICE float* slot(u32 at) const {
        return reinterpret_cast<float*>(workspace + at * Shape::kSlotBytes + group * Shape::kGroupBytes) + thread * 4;
    }
    TILEWISE_DEVICE u64* flag(u32 at) const {
        return reinterpret_cast<u64*>(workspace + blocks * Shape::kSlotBytes + Index(at) * kFlagBytes) + group;
    }
    TILEWISE_DEVICE void raise(u32 at) const {
        publish();
        sync();
        if (thread == 0) store_release(flag(at), kRaised);
    }
    // Until the flag is raised and so many additions are announced; takes it down.
    TILEWISE_DEVICE void wait(u32 at, u32 additions) const {
        if (thread == 0) {
            while (load_acquire(flag(at)) != kRaised + additions) {
            }
            *flag(at) = 0;
        }
        sync();
    }

    template <class At>
    TILEWISE_DEVICE void put(u32 at, At&& sum) const {
        float* to = slot(at);
        TILEWISE_UNROLL
        for (int i = 0; i < Shape::kSums; i += 4) {
            Packet<16> four;
            TILEWISE_UNROLL
            for (int j = 0; j < 4; ++j) four.words[j] = __builtin_bit_cast(u32, sum(i + j));
            store_global<16>(to + i * Shape::kThreads, four);
        }
    }
    template <class At>
    TILEWISE_DEVICE void add(u32 at, At&& sum) const {
        const float* from = slot(at);
        TILEWISE_UNROLL
        for (int i = 0; i < Shape::kSums; i += 4) {
            const Packet<16> four = load_global<16>(from + i * Shape::kThreads);
            TILEWISE_UNROLL
            for (int j = 0; j < 4; ++j) sum(i + j) += __builtin_bit_cast(Sum, four.words[j]);
        }
    }
    template <class At>
    TILEWISE_DEVICE void add_to(u32 at, At&& sum) const {
        Sum* to = reinterpret_cast<Sum*>(slot(at));
        TILEWISE_UNROLL
        for (int i = 0; i < Shape::kSums; i += 4) {
            const Sum four[4] = {sum(i), sum(i + 1), sum(i + 2), sum(i + 3)};
            add_global(to + i * Shape::kThreads, four);
        }
    }
};

}  // namespace tilewise::gpu
