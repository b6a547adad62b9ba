// SPDX-License-Identifier: MIT
// GEMM of fp32 operands that keeps both of a unit's multipliers busy: of a tile of 128 x 192, four warps compute 128 columns in plain
// arithmetic (simt_core.hpp), four others 64 columns in fp64 matrix units (double_core.hpp), one of each kind on every scheduler.
// All copy operands (mainloop.hpp), and both kinds meet the same barriers.
#pragma once
#include "block_gemm.hpp"
#include "double_core.hpp"
#include "simt_core.hpp"

namespace tilewise::cuda {

template <class Config>
struct MixedGemm {
    using Shape = BlockShape<Config>;
    static constexpr int kPlainCols = 128, kDoubleCols = 64, kPartWarps = 4;
    static_assert(Config::tile_m == 128 && Config::tile_n == kPlainCols + kDoubleCols && Config::wave_m == 2 &&
                  Config::wave_n == 4 && Config::wave_k == 1);

    struct PlainConfig : Config {
        static constexpr int tile_n = kPlainCols, wave_n = 2, warp_m = 32, warp_n = 64, warp_k = 1;
        static constexpr int threads = kPartWarps * 32;
    };
    struct DoubleConfig : Config {
        static constexpr int tile_n = kDoubleCols, wave_n = 2, warp_m = 16, warp_n = 8, warp_k = 1;
        static constexpr int threads = kPartWarps * 32;
    };
    using Plain = SimtCore<PlainConfig>;
    struct Double : DoubleCore<DoubleConfig> {
        // Its columns lie behind the others.
        static constexpr bool kFetchesFirst = true;
        TILEWISE_DEVICE void fetch_first(SharedAddress, SharedAddress) {}
        template <class Ready>
        TILEWISE_DEVICE void multiply_fetched(SharedAddress a, SharedAddress b, SharedAddress, SharedAddress,
                                              Ready&& ready) {
            this->multiply(a, b + u32(kPlainCols * Config::tile_k * int(sizeof(float))));
            ready();
        }
    };

    template <class Part, class Core>
    static TILEWISE_DEVICE void run_part(const KernelArgs& args, const TilePlace& place, const typename Shape::A& a,
                                         const typename Shape::B& b, int steps, int last, Index first_col,
                                         SharedAddress regions) {
        Core core;
        Mainloop<Config, Core>{a, b, steps, last, shared_start()}.run(core);
        using Out = Drain<Part, Core>;
        const Index row = Index(place.tile_m) * Config::tile_m;
        const Index col = Index(place.tile_n) * Config::tile_n + first_col;
        const SharedAddress region = regions + u32(core.warp * Out::Region::kBytes);
        if (col < args.n)
            Out(args, Index(place.batch), int(place.k_part), args.m, row, col, region, EvenRows{row}).run(core);
    }

    static TILEWISE_DEVICE void run_tile(const KernelArgs& args, const Work& work) {
        using Gemm = BlockGemm<Config, Plain>;
        const TilePlace& place = work.tile;
        const Index row = Index(place.tile_m) * Config::tile_m;
        const Index k_begin = Index(work.begin) * Config::tile_k, k_bound = Index(work.end) * Config::tile_k;
        const Index k_end = k_bound < args.k ? k_bound : args.k;
        const typename Shape::A a(
            {Gemm::template entry_of<typename Config::A>(args.a, place.batch), args.m, args.a.row_stride}, row,
            k_begin);
        const typename Shape::B b = Gemm::columns_of(args, work, k_begin);
        const int steps = work.end - work.begin, last = int(k_end - k_begin - Index(steps - 1) * Config::tile_k);
        constexpr int kPlainBytes = kPartWarps * Plain::Region::kBytes;
        static_assert(kPlainBytes + kPartWarps * Double::Region::kBytes <= Config::shared_bytes);
        if (warp_index() < kPartWarps) {
            run_part<PlainConfig, Plain>(args, place, a, b, steps, last, 0, shared_start());
        } else {
            run_part<DoubleConfig, Double>(args, place, a, b, steps, last, kPlainCols, shared_start() + kPlainBytes);
        }
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        griddep_launch();
        const Blocks blocks{block_index(), block_count()};
        const int steps = int(tile_count(args.k, Config::tile_k));
        const TileOrder<> order(args, Config::tile_m, Config::tile_n);
        TileWalk<TileOrder<>> walk(order, args, steps, blocks);
        Work work;
        const auto next = [&] { return walk.next(work, [&](const TilePlace&) { return steps; }); };
        bool more = next();
        griddep_wait();
        TILEWISE_ROLLED
        while (more) {
            run_tile(args, work);
            more = next();
            if (more) sync_block();  // the next tile takes the shared memory
        }
    }
};

}  // namespace tilewise::cuda

#define TILEWISE_CUDA_MIXED_GEMM(Config) TILEWISE_CUDA_KERNELS(Config, tilewise::cuda::MixedGemm<Config>)
