// SPDX-License-Identifier: MIT
// GEMM on MFMA: what a generated stub includes. A block walks over tiles as ../../gpu/block_gemm.hpp says, with the loops of
// ../mfma_loop.hpp. Not here: swap_ab.
#pragma once
#include "../../gpu/block_gemm.hpp"
#include "../die_order.hpp"
#include "../mfma_core.hpp"
#include "../mfma_loop.hpp"

namespace tilewise::hip {

// A config as the shape of a block sees it, which has fewer pipelines than the loops here.
template <class Config>
struct LoopOf : Config {
    static constexpr auto loop_pipeline = Config::pipeline;
    static constexpr auto pipeline = Pipeline::compv3;
    static constexpr bool copies = copies_directly(loop_pipeline), packed_b = loop_pipeline == Pipeline::preshuffle;
    static constexpr int piece_a = copies
                                       ? direct_piece(Config::direct_bytes, Config::vector_a* Config::A::bytes,
                                                      Config::tile_m* Config::tile_k* Config::A::bytes, Config::threads)
                                       : 0;
    static constexpr int piece_b =
        copies ? direct_piece(Config::direct_bytes, packed_b ? kChunkBytes : Config::vector_b* Config::B::bytes,
                              Config::tile_n* Config::tile_k* Config::B::bytes, Config::threads)
               : 0;
};

}  // namespace tilewise::hip

namespace tilewise::gpu {

template <class Config>
requires(Config::uses_mfma) struct OperandTiles<Config> {
    using A =
        typename hip::GemmTileChoice<typename Config::A, Config::tile_m, Config::tile_k, Config::a_row,
                                     Config::vector_a, Config::threads, Config::piece_a, Config::turned_reads>::type;
    using ReadB =
        typename hip::GemmTileChoice<typename Config::B, Config::tile_n, Config::tile_k, !Config::b_row,
                                     Config::vector_b, Config::threads, Config::piece_b, Config::turned_reads>::type;
    using B = typename ChooseType<
        Config::packed_b,
        hip::PackedDirect<typename Config::B, Config::tile_n, Config::tile_k, Config::piece_b, Config::threads>,
        ReadB>::type;
};

}  // namespace tilewise::gpu

namespace tilewise::hip::mfma_gemm {

template <class Config, class Core>
struct Block : BlockGemm<Config, Core> {
    using Base = BlockGemm<Config, Core>;
    using typename Base::Out, typename Base::Shape, typename Base::Walk;

    static TILEWISE_DEVICE typename Shape::B columns_of(const KernelArgs& args, const Work& work, Index k_begin) {
        if constexpr (Config::packed_b) {
            const PackedB packed = {args.n, args.k, args.batch, Config::tile_n, Config::tile_k, Shape::B::kBytes};
            const Index matrix = args.b.batch_stride == 0 ? 0 : work.tile.batch;
            return typename Shape::B(static_cast<const char*>(args.b.data) +
                                     packed.tile_offset(matrix, work.tile.tile_n, work.begin));
        } else {
            return Base::columns_of(args, work, k_begin);
        }
    }
    static TILEWISE_DEVICE void run_tile(const KernelArgs& args, const Work& work, const Blocks& blocks) {
        const SharedAddress shared = shared_start();
        const TilePlace& place = work.tile;
        const Index row = Index(place.tile_m) * Config::tile_m, col = Index(place.tile_n) * Config::tile_n;
        const Index k_begin = Index(work.begin) * Config::tile_k, k_bound = Index(work.end) * Config::tile_k;
        const Index k_end = k_bound < args.k ? k_bound : args.k;
        const int steps = work.end - work.begin;
        Core core;
        {
            const typename Shape::A a({Base::template entry_of<typename Config::A>(args.a, place.batch), args.m, args.k,
                                       Config::a_row ? args.a.row_stride : args.a.col_stride},
                                      row, k_begin);
            const typename Shape::B b = columns_of(args, work, k_begin);
            MfmaLoop<Config, Core>{a, b, steps, int(k_end - k_begin - Index(steps - 1) * Config::tile_k), shared}.run(
                core);
        }
        if constexpr (Config::wave_k > 1) {
            if (!core.add_waves(shared)) return;
        }
        // What follows reads the arguments anew: kept during the loop, they would take its registers.
        const KernelArgs& again = reread(args);
        if (!Base::combine(again, work, blocks, core)) return;
        const SharedAddress region = shared + core.warp * Out::Region::kBytes;
        Out(again, Index(place.batch), int(place.k_part), again.m, again.n, row, col, region, EvenRows{row},
            EvenColumns{col})
            .run(core);
    }
    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        const Blocks blocks{tile_number<Config>(block_index(), block_count()), block_count()};
        const int steps = int(tile_count(args.k, Config::tile_k));
        const TileOrder<> order(args, Config::tile_m, Config::tile_n);
        Walk walk(order, args, steps, blocks);
        Work work;
        TILEWISE_ROLLED
        while (walk.next(work, [&](const TilePlace&) { return steps; })) {
            run_tile(args, work, blocks);
            sync_block();  // the next tile takes the shared memory
        }
    }
};

template <class Config>
using MfmaGemm = Block<LoopOf<Config>, MfmaCore<LoopOf<Config>>>;

}  // namespace tilewise::hip::mfma_gemm

#define TILEWISE_HIP_MFMA_GEMM(Config) TILEWISE_GPU_KERNELS(Config, tilewise::hip::mfma_gemm::MfmaGemm<Config>)
