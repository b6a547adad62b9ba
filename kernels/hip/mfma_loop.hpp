// SPDX-License-Identifier: MIT
// The loop over k of a block of MFMA waves: brings tiles of A and B to shared memory (bounded_tile.hpp) and lets the core multiply them.
//   basic_v1        global -> registers -> one buffer, then arithmetic
//   compv3          the same, with the next tile on its way to registers during the arithmetic
//   mem             the same, with two
//   compv4          two buffers: the next tile is put away and the one after it is on its way during the arithmetic; one barrier a step
//   compv5          the same; half of the waves fetch operands while the others multiply, then they change places: two barriers a step
//   compv6          as compv4, but operands are fetched one step of k before they are multiplied
//   basic_async_v1  copies straight into one buffer
//   comp_async      the same into a ring of three, two of them under way: a step waits for the older one alone; of two where three have
//                   no place: a step waits for the one that is under way
//   preshuffle      the same, from a B that was packed ahead as it lies in the buffers
// The last tile of k, which may be cut short, comes first: all others are whole, and a step is straight code without a question. What a
// step asks for beyond the last tile is zero and comes from nowhere. Operands that no direct copy brings go through registers in every
// pipeline. On return every thread is done with shared memory.
#pragma once
#include "bounded_tile.hpp"

namespace tilewise::hip {

TILEWISE_DEVICE constexpr bool copies_directly(Pipeline pipeline) {
    return pipeline == Pipeline::comp_async || pipeline == Pipeline::basic_async_v1 || pipeline == Pipeline::preshuffle;
}
TILEWISE_DEVICE constexpr int loop_buffers(Pipeline pipeline, int ring) {
    switch (pipeline) {
        case Pipeline::comp_async:
        case Pipeline::preshuffle: return ring;
        case Pipeline::compv4:
        case Pipeline::compv5:
        case Pipeline::compv6: return 2;
        default: return 1;
    }
}

template <class Config, class Core>
struct MfmaLoop {
    using A = typename BlockShape<Config>::A;
    using B = typename BlockShape<Config>::B;
    static constexpr Pipeline kPipeline = Config::loop_pipeline;
    static constexpr int kBuffers = loop_buffers(kPipeline, Config::ring_buffers), kBufferBytes = A::kBytes + B::kBytes;
    static constexpr int kCopies = A::kCopies + B::kCopies;  // instructions of a wave for a tile of each
    static_assert(Config::shared_bytes >= kBuffers * kBufferBytes, "shared memory for all buffers");

    const A& a;
    const B& b;
    int steps;
    int last_depth;  // elements of k in the last tile
    SharedAddress shared;

    TILEWISE_DEVICE void run(Core& core) const {
        if constexpr (kPipeline == Pipeline::basic_v1 || kPipeline == Pipeline::compv3) {
            run_single(core);
        } else if constexpr (kPipeline == Pipeline::mem) {
            run_deep(core);
        } else if constexpr (kPipeline == Pipeline::basic_async_v1) {
            run_direct(core);
        } else if constexpr (copies_directly(kPipeline)) {
            run_ring(core);
        } else if constexpr (kPipeline == Pipeline::compv5) {
            run_turns(core);
        } else {
            run_double(core);
        }
    }

private:
    struct Registers {
        typename A::Registers a;
        typename B::Registers b;
    };
    TILEWISE_DEVICE SharedAddress a_buffer(u32 offset) const { return shared + offset; }
    TILEWISE_DEVICE SharedAddress b_buffer(u32 offset) const { return shared + offset + A::kBytes; }
    TILEWISE_DEVICE void multiply(Core& core, u32 offset) const {
        hide(offset);
        if constexpr (Config::interwave) set_priority<1>();
        core.multiply(a_buffer(offset), b_buffer(offset));
        if constexpr (Config::interwave) set_priority<0>();
    }

    // Tile number 0 of the loop is the last of k.
    TILEWISE_DEVICE void load_first(Registers& to) const {
        if constexpr (!A::kDirect) a.load_last(to.a, steps - 1, steps > 0, last_depth);
        if constexpr (!B::kDirect) b.load_last(to.b, steps - 1, steps > 0, last_depth);
    }
    TILEWISE_DEVICE void load(Registers& to, int number) const {
        if constexpr (!A::kDirect) a.load(to.a, number - 1, number < steps);
        if constexpr (!B::kDirect) b.load(to.b, number - 1, number < steps);
    }
    static TILEWISE_DEVICE void put(const Registers& from, SharedAddress buffer) {
        if constexpr (!A::kDirect) A::put(from.a, buffer);
        if constexpr (!B::kDirect) B::put(from.b, buffer + A::kBytes);
    }
    TILEWISE_DEVICE void copy_first(u32 offset) const {
        if constexpr (A::kDirect) a.copy_last(a_buffer(offset), steps - 1, steps > 0, last_depth);
        if constexpr (B::kDirect) b.copy_last(b_buffer(offset), steps - 1, steps > 0, last_depth);
    }
    TILEWISE_DEVICE void copy(u32 offset, int number) const {
        if constexpr (A::kDirect) a.copy(a_buffer(offset), number - 1, number < steps);
        if constexpr (B::kDirect) b.copy(b_buffer(offset), number - 1, number < steps);
    }
    // Until the tiles are there whose copies are the wave's `later` copies from the end, for all waves.
    template <int later>
    static TILEWISE_DEVICE void arrive() {
        if constexpr (kCopies > 0) {
            sync_copies<later>();
        } else {
            sync_shared();
        }
    }
    static TILEWISE_DEVICE u32 next_buffer(u32 offset) {
        return offset == (kBuffers - 1) * kBufferBytes ? 0 : offset + kBufferBytes;
    }

    TILEWISE_DEVICE void run_single(Core& core) const {
        constexpr bool ahead = kPipeline == Pipeline::compv3;
        Registers registers;
        load_first(registers);
        put(registers, shared);
        TILEWISE_ROLLED
        for (int step = 0; step < steps; ++step) {
            sync_shared();  // the tile is there for all
            if constexpr (ahead) load(registers, step + 1);
            multiply(core, 0);
            if constexpr (!ahead) load(registers, step + 1);
            sync_shared();  // all are done with it
            put(registers, shared);
        }
        sync_shared();
    }

    TILEWISE_DEVICE void run_deep(Core& core) const {
        Registers even, odd;  // registers have no addresses: every second step has its own code
        load_first(even);
        load(odd, 1);
        TILEWISE_ROLLED
        for (int step = 0; step + 1 < steps; step += 2) {
            multiply_held(core, even, step + 2);
            multiply_held(core, odd, step + 3);
        }
        if (steps % 2 != 0) multiply_held(core, even, steps);
        sync_shared();
    }
    // The tile in the registers, which then wait for number `next`.
    TILEWISE_DEVICE void multiply_held(Core& core, Registers& registers, int next) const {
        put(registers, shared);
        sync_shared();
        load(registers, next);
        multiply(core, 0);
        sync_shared();
    }

    TILEWISE_DEVICE void run_double(Core& core) const {
        Registers registers;
        load_first(registers);
        put(registers, shared);
        load(registers, 1);
        u32 reading = 0;
        TILEWISE_ROLLED
        for (int step = 0; step < steps; ++step) {
            const u32 filling = next_buffer(reading);
            sync_shared();  // this step's tile is there for all, and all are done with the other buffer
            put(registers, shared + filling);
            load(registers, step + 2);
            if constexpr (kPipeline == Pipeline::compv6) {
                core.multiply_ahead(a_buffer(reading), b_buffer(reading));
            } else {
                multiply(core, reading);
            }
            reading = filling;
        }
        sync_shared();
    }

    // Wave groups are one phase apart: the second waits once more at the start, the first at the end. A wave puts the next tile away while
    // it fetches: the first group's next phase but one reads it, and both groups have fetched from that buffer for the last time.
    TILEWISE_DEVICE void run_turns(Core& core) const {
        static_assert(BlockShape<Config>::kWarps % 2 == 0, "two groups of waves");
        const bool second = warp_index() >= BlockShape<Config>::kWarps / 2;
        Registers registers;
        load_first(registers);
        put(registers, shared);
        load(registers, 1);
        u32 reading = 0;
        sync_shared();
        if (second) sync_shared();
        TILEWISE_ROLLED
        for (int step = 0; step < steps; ++step) {
            typename Core::Tile tile;
            core.fetch_tile(tile, a_buffer(reading), b_buffer(reading));
            reading = next_buffer(reading);
            put(registers, shared + reading);
            load(registers, step + 2);
            sync_shared();
            set_priority<1>();
            core.multiply_tile(tile);
            set_priority<0>();
            sync_shared();
        }
        if (!second) sync_shared();
    }

    TILEWISE_DEVICE void run_direct(Core& core) const {
        Registers registers;
        load_first(registers);
        copy_first(0);
        TILEWISE_ROLLED
        for (int step = 0; step < steps; ++step) {
            put(registers, shared);
            arrive<0>();
            load(registers, step + 1);
            multiply(core, 0);
            sync_shared();  // all are done with the tile
            copy(0, step + 1);
        }
        arrive<0>();
    }

    TILEWISE_DEVICE void run_ring(Core& core) const {
        Registers registers;
        load_first(registers);
        copy_first(0);
        put(registers, shared);
        load(registers, 1);
        constexpr int ahead = kBuffers - 1, later = (ahead - 1) * kCopies;
        TILEWISE_UNROLL
        for (int t = 1; t < ahead; ++t) copy(t * kBufferBytes, t);
        u32 reading = 0;
        TILEWISE_ROLLED
        for (int step = 0; step < steps; ++step) {
            const u32 next = next_buffer(reading), filling = ahead == 1 ? next : next_buffer(next);
            arrive<later>();  // this step's tile is there for all, and all are done with the buffer before it
            put(registers, shared + next);
            load(registers, step + 2);
            copy(filling, step + ahead);
            multiply(core, reading);
            reading = next;
        }
        arrive<0>();
    }
};

}  // namespace tilewise::hip
