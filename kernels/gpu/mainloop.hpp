// SPDX-License-Identifier: MIT
// The loop over k of one block: brings tiles of A and B to shared memory as the config's pipeline says and lets the core
// (mma_core.hpp, simt_core.hpp) multiply them.
//   basic_v1        global -> registers -> one buffer, then arithmetic
//   compv3          the same, with the next tile on its way to registers during the arithmetic
//   compv4          two buffers: the next tile is put away after the arithmetic, one barrier a step
//   basic_async_v1  asynchronous copies into one buffer
//   mem, comp_async asynchronous copies into a ring of `stages` buffers, stages - 1 of them in flight
//   preshuffle      the same, from a B that was packed ahead as it lies in the buffers (pack_b.hpp)
// On return every thread is done with shared memory.
#pragma once
#include "pack_b.hpp"
#include "unaligned_tile.hpp"

namespace tilewise::gpu {

// How the tiles of the operands come to shared memory; convolutions have their own (gather_conv.hpp).
template <class Config>
struct OperandTiles {
    using A = typename ProductTileChoice<typename Config::A, Config::tile_m, Config::tile_k, Config::a_row,
                                         Config::vector_a, Config::threads>::type;
    using B = typename PackedChoice<
        Config::pipeline == Pipeline::preshuffle, Config::threads,
        typename ProductTileChoice<typename Config::B, Config::tile_n, Config::tile_k, !Config::b_row, Config::vector_b,
                                   Config::threads>::type>::type;
};

// A config's blocks need this much; the numbers the host launches with are checked against it.
template <class Config>
struct BlockShape {
    using A = typename OperandTiles<Config>::A;
    using B = typename OperandTiles<Config>::B;
    static constexpr Pipeline kPipeline = Config::pipeline;
    static constexpr bool kPackedB = kPipeline == Pipeline::preshuffle;
    static constexpr bool kRing = kPackedB || kPipeline == Pipeline::mem || kPipeline == Pipeline::comp_async;
    static constexpr int kBuffers = kRing ? Config::stages : kPipeline == Pipeline::compv4 ? 2 : 1;
    static constexpr int kBufferBytes = A::kBytes + B::kBytes;
    // Registers of a thread during the arithmetic: sums, and the next tiles on their way. Where these are too many
    // together, only A's tile is on its way (if at all), and B's goes straight to shared memory when there is room.
    static constexpr bool kPrefetch = kPipeline == Pipeline::compv3 || kPipeline == Pipeline::compv4;
    static constexpr int kSumRegisters = Config::tile_m * Config::tile_n * Config::wave_k / Config::threads;
    static constexpr int kMostHeld = 160, kMostAccesses = 16;  // every access takes an address, too
    static constexpr bool kHoldB = kSumRegisters + A::kRegisters + B::kRegisters <= kMostHeld;
    static constexpr bool kHoldA = kHoldB || (kPrefetch && A::kCount <= kMostAccesses);
    static constexpr int kWayRegisters = kPrefetch ? (kHoldA ? A::kRegisters : 0) + (kHoldB ? B::kRegisters : 0) : 0;
    static constexpr int kWarps = Config::wave_m * Config::wave_n * Config::wave_k;
    static_assert(kRing || kPipeline == Pipeline::basic_v1 || kPipeline == Pipeline::compv3 ||
                      kPipeline == Pipeline::compv4 || kPipeline == Pipeline::basic_async_v1,
                  "a pipeline of blocks without producer waves");
    static_assert(!kRing || Config::stages >= 2, "a ring has at least two stages");
    static_assert(Config::threads == kArchLanes * kWarps, "a thread for every lane of every wave");
    static_assert(Config::shared_bytes >= kBuffers * kBufferBytes, "shared memory for all buffers");
};

template <class Config, class Core>
struct Mainloop {
    using Shape = BlockShape<Config>;
    using A = typename Shape::A;
    using B = typename Shape::B;
    static constexpr Pipeline kPipeline = Config::pipeline;
    static constexpr int kBuffers = Shape::kBuffers;

    const A& a;
    const B& b;
    int steps;
    int last_depth;  // elements of k in the last step
    SharedAddress shared;

    TILEWISE_DEVICE SharedAddress a_buffer(int index) const { return shared + index * Shape::kBufferBytes; }
    TILEWISE_DEVICE SharedAddress b_buffer(int index) const { return a_buffer(index) + A::kBytes; }
    TILEWISE_DEVICE int depth_of(int step) const { return step + 1 < steps ? Config::tile_k : last_depth; }
    TILEWISE_DEVICE void copy(int step, int index) const {
        const int depth = depth_of(step);
        a.copy(a_buffer(index), step, depth);
        b.copy(b_buffer(index), step, depth);
    }
    TILEWISE_DEVICE void multiply(Core& core, int index) const { core.multiply(a_buffer(index), b_buffer(index)); }
    // The same for a core that fetches the first operands of the next tile while it multiplies the last of this one: `ready`
    // waits for the next tile, in buffer `next`.
    template <class Ready>
    TILEWISE_DEVICE void multiply_ahead(Core& core, int index, int next, Ready&& ready) const {
        core.multiply_fetched(a_buffer(index), b_buffer(index), a_buffer(next), b_buffer(next), ready);
    }

    TILEWISE_DEVICE void run(Core& core) const {
        if constexpr (Shape::kRing) {
            run_ring(core);
        } else if constexpr (kPipeline == Pipeline::basic_async_v1) {
            run_single_async(core);
        } else if constexpr (kPipeline == Pipeline::compv4) {
            run_double(core);
        } else {
            run_single(core);
        }
        sync_block();
    }

private:
    struct Registers {
        typename A::Registers a;
        typename B::Registers b;
    };
    TILEWISE_DEVICE void load(Registers& registers, int step) const {
        if constexpr (Shape::kHoldA) a.load(registers.a, step, depth_of(step));
        if constexpr (Shape::kHoldB) b.load(registers.b, step, depth_of(step));
    }
    TILEWISE_DEVICE void put(const Registers& registers, int step, int index) const {
        if constexpr (Shape::kHoldA) {
            A::put(registers.a, a_buffer(index));
        } else {
            a.move(a_buffer(index), step, depth_of(step));
        }
        if constexpr (Shape::kHoldB) {
            B::put(registers.b, b_buffer(index));
        } else {
            b.move(b_buffer(index), step, depth_of(step));
        }
    }

    TILEWISE_DEVICE void run_ring(Core& core) const {
        // Where a core fetches from the next tile while it multiplies the last of this one, all are known to be done with the
        // tile before this one only: copies are one step less ahead.
        constexpr bool fetches_ahead = Core::kFetchesFirst && kBuffers > 2;
        constexpr int ahead = fetches_ahead ? kBuffers - 2 : kBuffers - 1;
        // Rolled, since it runs once: fetching its code would take longer than looping.
        TILEWISE_ROLLED
        for (int s = 0; s < ahead; ++s) {
            if (s < steps) copy(s, s);
            commit_copies();  // a group for every step, empty or not, so that counting groups is counting steps
        }
        int reading = 0, filling = ahead;
        // The tile that is read next is there for all, and all are done with the buffer filled next.
        const auto arrive = [] {
            wait_copies<ahead - 1>();
            sync_block();
        };
        if constexpr (fetches_ahead) {
            arrive();
            core.fetch_first(a_buffer(0), b_buffer(0));
        }
        TILEWISE_ROLLED
        for (int step = 0; step < steps; ++step) {
            const int next = reading + 1 == kBuffers ? 0 : reading + 1;
            if constexpr (!fetches_ahead) arrive();
            if (step + ahead < steps) copy(step + ahead, filling);
            commit_copies();
            if constexpr (fetches_ahead) {
                multiply_ahead(core, reading, next, arrive);
            } else {
                multiply(core, reading);
            }
            reading = next;
            filling = filling + 1 == kBuffers ? 0 : filling + 1;
        }
        wait_copies<0>();
    }

    TILEWISE_DEVICE void run_single_async(Core& core) const {
        TILEWISE_ROLLED
        for (int step = 0; step < steps; ++step) {
            if (step > 0) sync_block();  // all are done with the tile before
            copy(step, 0);
            commit_copies();
            wait_copies<0>();
            sync_block();
            multiply(core, 0);
        }
    }

    TILEWISE_DEVICE void run_double(Core& core) const {
        Registers registers;
        if (steps > 0) load(registers, 0), put(registers, 0, 0);
        TILEWISE_ROLLED
        for (int step = 0; step < steps; ++step) {
            const bool more = step + 1 < steps;
            sync_block();  // this step's tile is there for all, and all are done with the other buffer
            if (more) load(registers, step + 1);
            multiply(core, step & 1);
            if (more) put(registers, step + 1, (step + 1) & 1);
        }
    }

    TILEWISE_DEVICE void run_single(Core& core) const {
        Registers registers;
        if (steps > 0) load(registers, 0);
        TILEWISE_ROLLED
        for (int step = 0; step < steps; ++step) {
            if (step > 0) sync_block();  // all are done with the tile before
            put(registers, step, 0);
            sync_block();
            const bool more = step + 1 < steps;
            if (Shape::kPrefetch && more) load(registers, step + 1);
            multiply(core, 0);
            if (!Shape::kPrefetch && more) load(registers, step + 1);
        }
    }
};

}  // namespace tilewise::gpu
