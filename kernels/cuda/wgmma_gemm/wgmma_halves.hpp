// SPDX-License-Identifier: MIT
// tf32x3 with warpgroup products (wgmma_gemm.hpp): these read fp32 from shared memory and cut it to tf32, so what they leave out
// has to be there too. Three of the four warps that have nothing but copies to do put the rests of a stage's elements beside it,
// each at the same place, as soon as it has come; a third barrier of the stage says that they are there.
// Shared memory: every element is read and its rest written once, 1/6 of what the three products of a 128 x 128 tile take.
#pragma once
#include "../tf32_halves.hpp"
#include "wgmma_feed.hpp"

namespace tilewise::cuda::wgmma_gemm {

template <class Config, class Source>
struct WgmmaHalves {
    using Shape = WgmmaShape<Config>;
    using Ring = WgmmaRing<Shape>;
    static constexpr int kWarps = 3, kThreads = 32 * kWarps;  // all of the copying warpgroup but the first warp

    const KernelArgs& args;
    Ring ring;
    int thread;  // of these

    // In the order of the ring, as many stages as the block uses.
    TILEWISE_DEVICE void run(typename Shape::Walk walk) const {
        typename Ring::Cursor at;
        Work work;
        while (walk.next(work, [&](const TilePlace& tile) { return Source::steps(args, tile); })) {
            for (int step = work.begin; step < work.end; ++step, at.advance()) {
                barrier_wait(ring.full(at.stage), at.parity);
                split(ring.stage(at.stage), ring.rests(at.stage));
                async_proxy_fence();
                sync_warp();
                if (thread % 32 == 0) barrier_arrive(ring.halves(at.stage));
            }
        }
    }

private:
    TILEWISE_DEVICE void split(unsigned from, unsigned to) const {
        constexpr int kAtOnce = 4;  // accesses of a thread that are on their way
        TILEWISE_ROLLED
        for (int first = thread * 16; first < Shape::kStageBytes; first += kThreads * 16 * kAtOnce) {
            float x[kAtOnce][4];
            TILEWISE_UNROLL
            for (int i = 0; i < kAtOnce; ++i) {
                const int at = first + i * kThreads * 16;
                if (at < Shape::kStageBytes) load_shared_float4(from + at, x[i]);
            }
            TILEWISE_UNROLL
            for (int i = 0; i < kAtOnce; ++i) {
                const int at = first + i * kThreads * 16;
                Packet<16> rests;
                TILEWISE_UNROLL
                for (int j = 0; j < 4; ++j) rests.words[j] = rest_of(bits_of(x[i][j]), cut_tf32(bits_of(x[i][j])));
                if (at < Shape::kStageBytes) store_shared<16>(to + at, rests);
            }
        }
    }
};

}  // namespace tilewise::cuda::wgmma_gemm
