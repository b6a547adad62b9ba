// SPDX-License-Identifier: MIT
// The copying of a warpgroup kernel (wgmma_gemm.hpp): one thread issues, step after step of everything its block computes, the
// copies that fill the next stage of the ring, and waits before each until the stage is free. A thread of a warp that does
// nothing else calls it as often as there are steps; one of a computing warpgroup calls it after every stage it has released.
#pragma once
#include "wgmma_shape.hpp"

namespace tilewise::cuda::wgmma_gemm {

// The ring of stages in shared memory. `full` says that a stage's tiles have come, `halves` that their rests are there too,
// `empty` that all have used them.
template <class Shape>
struct WgmmaRing {
    unsigned shared;  // its address

    TILEWISE_DEVICE unsigned stage(int index) const {
        return shared + static_cast<unsigned>(index * Shape::kStageBytes);
    }
    TILEWISE_DEVICE unsigned rests(int index) const { return stage(index) + Shape::kRests; }
    TILEWISE_DEVICE unsigned full(int index) const { return barrier(index, 0); }
    TILEWISE_DEVICE unsigned empty(int index) const { return barrier(index, 1); }
    TILEWISE_DEVICE unsigned halves(int index) const { return barrier(index, 2); }
    // Products wait for this barrier.
    TILEWISE_DEVICE unsigned ready(int index) const { return Shape::kThree ? halves(index) : full(index); }

    TILEWISE_DEVICE unsigned barrier(int index, int which) const {
        return shared + Shape::kBarriers + static_cast<unsigned>(index * Shape::kStageBarrierBytes + which * 8);
    }

    // Where a role is in the ring: each turn around flips the parity that its waits look for.
    struct Cursor {
        int stage = 0;
        unsigned parity = 0;
        TILEWISE_DEVICE void advance() {
            if (++stage == Shape::kStages) {
                stage = 0;
                parity ^= 1;
            }
        }
        TILEWISE_DEVICE void skip(int steps) {
            stage += steps;
            parity ^= static_cast<unsigned>(stage / Shape::kStages) & 1;
            stage %= Shape::kStages;
        }
    };
};

template <class Config, class Source>
struct WgmmaFeed {
    using Shape = WgmmaShape<Config>;
    using Ring = WgmmaRing<Shape>;

    const KernelArgs& args;
    Ring ring;
    Source source;
    typename Shape::Walk walk;
    typename Source::Steps steps;
    typename Ring::Cursor at = {};
    int step = 0, end = 0;  // of the work in hand
    bool more = true;
    unsigned copied_bytes = Shape::kCopiedBytes;  // of a stage

    TILEWISE_DEVICE WgmmaFeed(const KernelArgs& kernel_args, const Source& operands, unsigned shared,
                              const typename Shape::Walk& start)
        : args(kernel_args), ring{shared}, source(operands), walk(start), steps(kernel_args) {
        if constexpr (requires { source.copied_bytes(); }) copied_bytes = source.copied_bytes();
        next_work();
    }

    // The next step, if there is one.
    TILEWISE_DEVICE void issue() {
        if (!more) return;
        barrier_wait(ring.empty(at.stage), at.parity ^ 1);
        barrier_expect(ring.full(at.stage), copied_bytes);
        source.copy(ring.stage(at.stage), ring.full(at.stage), step);
        at.advance();
        if (++step == end) next_work();
    }

    // The last stages must not be released to a block that has gone: until all of them have been.
    TILEWISE_DEVICE void drain() {
        for (int i = 0; i < Shape::kStages; ++i, at.advance()) barrier_wait(ring.empty(at.stage), at.parity ^ 1);
    }

private:
    TILEWISE_DEVICE void next_work() {
        Work work;
        do {
            more = walk.next(work, steps);
            if (!more) return;
        } while (work.begin >= work.end);
        step = work.begin, end = work.end;
        source.begin(work.tile, step);
    }
};

}  // namespace tilewise::cuda::wgmma_gemm
