// SPDX-License-Identifier: MIT
// The loop over k of the pipeline mem: a few tiles are on their way to registers while one is multiplied, of which a thread has 512. One
// buffer of shared memory serves all of them. Otherwise as ../gpu/mainloop.hpp.
#pragma once
#include "../gpu/mainloop.hpp"

namespace tilewise::hip {

// A config of mem as the shape of a block and its loop see it: that of compv3, with more tiles on their way.
template <class Config>
struct DeepConfig : Config {
    static constexpr auto pipeline = Pipeline::compv3;
    static constexpr int tiles_on_the_way = 2;
};
template <class Config>
using LoopConfig = typename ChooseType<Config::pipeline == Pipeline::mem, DeepConfig<Config>, Config>::type;

}  // namespace tilewise::hip

namespace tilewise::gpu {

template <class Config, class Core>
requires(Config::tiles_on_the_way > 1) struct Mainloop<Config, Core> {
    using Shape = BlockShape<Config>;
    using A = typename Shape::A;
    using B = typename Shape::B;
    static constexpr int kTiles = Config::tiles_on_the_way;

    const A& a;
    const B& b;
    int steps;
    int last_depth;  // elements of k in the last step
    SharedAddress shared;

    TILEWISE_DEVICE void run(Core& core) const {
        Registers tiles[kTiles];
        TILEWISE_UNROLL
        for (int t = 0; t < kTiles; ++t) {
            if (t < steps) load(tiles[t], t);
        }
        TILEWISE_ROLLED
        for (int first = 0; first < steps; first += kTiles) {
            TILEWISE_UNROLL
            for (int t = 0; t < kTiles; ++t) {  // registers have no addresses
                const int step = first + t;
                if (step >= steps) continue;
                if (step > 0) sync_block();  // all are done with the tile before
                A::put(tiles[t].a, shared);
                B::put(tiles[t].b, shared + A::kBytes);
                sync_block();
                if (step + kTiles < steps) load(tiles[t], step + kTiles);
                core.multiply(shared, shared + A::kBytes);
            }
        }
        sync_block();
    }

private:
    struct Registers {
        typename A::Registers a;
        typename B::Registers b;
    };
    TILEWISE_DEVICE void load(Registers& registers, int step) const {
        const int depth = step + 1 < steps ? Config::tile_k : last_depth;
        a.load(registers.a, step, depth);
        b.load(registers.b, step, depth);
    }
};

}  // namespace tilewise::gpu
