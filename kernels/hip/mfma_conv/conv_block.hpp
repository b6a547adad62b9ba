// SPDX-License-Identifier: MIT
// The blocks of gathered convolutions on MFMA. Walks, operands and bytes are those of ../../gpu/gather_conv.hpp; tiles lie along k in
// shared memory, whichever way they come, and are loaded without a branch (../bounded_gather.hpp). Merged groups (merged_weights.hpp)
// walk over groups / merge products.
#pragma once
#include "../bounded_gather.hpp"
#include "../die_order.hpp"
#include "../mfma_core.hpp"
#include "../mfma_loop.hpp"
#include "merged_weights.hpp"

namespace tilewise::hip {

// A config as the shape of a block sees it, which has fewer pipelines than the loops here.
template <class Config>
struct ConvConfig : Config {
    using Plain = Config;
    static constexpr bool loads_bounded = true;
    static constexpr auto loop_pipeline = Config::pipeline;
    static constexpr auto pipeline = Pipeline::compv3;
};

}  // namespace tilewise::hip

namespace tilewise::gpu {

template <class Config>
requires(Config::loads_bounded) struct ConvTiles<Config> {
    using Base = ConvTiles<typename Config::Plain>;
    using ElementA = typename Config::A;
    using ElementB = typename Config::B;
    using Gathered = typename Base::Gathered;
    static constexpr bool kForward = Base::kForward, kWeight = Base::kWeight, kWide = Base::kWide,
                          kWholeChunks = Base::kWholeChunks;

    using Activation = hip::PatchSource<Gathered, Config::ndim, kWeight, Base::kTaps, kWide, kWholeChunks>;
    using Pixels = hip::PatchSource<ElementA, Config::ndim, true, 0, kWide>;
    // Output channels that are read together are of one tap.
    static constexpr int kRun = kWholeChunks ? kChunkBytes / ElementB::bytes : Config::vector_a;
    using Turned = hip::WeightSource<ElementB, Config::ndim, kRun, kWide, kWholeChunks>;
    using Filters = hip::FilterSource<ElementB, kWide>;
    using Merged = hip::MergedWeights<ElementB, Config::ndim, kForward, kWide>;

    template <class T, class Source, int extent, bool along_k, int vector>
    using Gather = hip::BoundedGather<T, Source, extent, Config::tile_k, along_k, vector, Config::threads>;
    template <class T, int extent, int vector>
    using Lines = hip::BoundedTile<T, extent, Config::tile_k, vector, Config::threads>;
    template <class T, int extent, int vector>
    using Turn = typename hip::GemmTileChoice<T, extent, Config::tile_k, false, vector, Config::threads, 0>::type;

    using WeightA = typename Either<Config::channels_last, Turn<ElementA, Config::tile_m, Config::vector_a>,
                                    Gather<ElementA, Pixels, Config::tile_m, true, Config::vector_a>>::type;
    using RowsA =
        typename Either<Config::explicit_gemm, Lines<ElementA, Config::tile_m, Config::vector_a>,
                        Gather<ElementA, Activation, Config::tile_m, Base::kRowsAlongK, Config::vector_a>>::type;
    using A = typename Either<kWeight, WeightA, RowsA>::type;

    // Weights lie along k: they alone are copied straight to shared memory.
    static constexpr int kPiece =
        hip::copies_directly(Config::loop_pipeline)
            ? hip::direct_piece(Config::direct_bytes, Config::vector_b* ElementB::bytes,
                                Config::tile_n* Config::tile_k* ElementB::bytes, Config::threads)
            : 0;
    using LinesB = typename Either<(kPiece > 0),
                                   hip::DirectTile<ElementB, Config::tile_n, Config::tile_k, kPiece, Config::threads>,
                                   Lines<ElementB, Config::tile_n, Config::vector_b>>::type;
    using ForwardB = typename Either<kWholeChunks, Gather<ElementB, Filters, Config::tile_n, true, 1>, LinesB>::type;
    using DataB = Gather<ElementB, Turned, Config::tile_n, false, Config::vector_b>;
    using MergedB = Gather<ElementB, Merged, Config::tile_n, kForward, Config::vector_b>;
    using PlainB = typename Either<kForward, ForwardB, DataB>::type;
    using WeightB =
        typename Either<Config::explicit_gemm, Turn<ElementB, Config::tile_n, Config::vector_b>,
                        Gather<ElementB, Activation, Config::tile_n, Base::kPixelsAlongK, Config::vector_b>>::type;
    using B = typename Either<kWeight, WeightB, typename Either<(Config::merge > 1), MergedB, PlainB>::type>::type;
};

}  // namespace tilewise::gpu

namespace tilewise::hip {

// The walk of a residue class during a loop that needs all scalar registers: in those of the lanes. Dimensions that the kernel lacks have
// one pixel and one tap.
template <int ndim, bool wide>
struct KeptWalk {
    static constexpr int kFirst = kMaxKernelDims - ndim, kNumbers = 10, kWords = wide ? 2 : 1;
    static_assert(sizeof(WalkDim) == kNumbers * sizeof(Index));
    u32 word[ndim][kNumbers][kWords];

    explicit TILEWISE_DEVICE KeptWalk(const Walk& walk) {
        TILEWISE_UNROLL
        for (int d = 0; d < ndim; ++d) {
            const WalkDim& dim = walk.dim[kFirst + d];
            const Index numbers[kNumbers] = {dim.count,   dim.out_first, dim.out_step,  dim.in_step,  dim.in_first,
                                             dim.in_size, dim.taps,      dim.tap_first, dim.tap_step, dim.tap_shift};
            TILEWISE_UNROLL
            for (int i = 0; i < kNumbers; ++i) {
                TILEWISE_UNROLL
                for (int w = 0; w < kWords; ++w) word[d][i][w] = in_lanes(u32(u64(numbers[i]) >> (32 * w)));
            }
        }
    }
    TILEWISE_DEVICE Index number(int d, int i) const {
        const int low = gpu::uniform(int(word[d][i][0]));
        if constexpr (wide) {
            return Index(u64(u32(gpu::uniform(int(word[d][i][1])))) << 32 | u32(low));
        } else {
            return low;
        }
    }
    TILEWISE_DEVICE Walk walk(const KernelConv& conv) const {
        Walk all = {};
        all.in_pixels = 1;
        TILEWISE_UNROLL
        for (int d = 0; d < kMaxKernelDims; ++d) {
            const int at = d - kFirst;
            all.dim[d] = at < 0 ? WalkDim{1, 0, 1, 1, 0, 1, 1, 0, 1, -1}
                                : WalkDim{number(at, 0), number(at, 1), number(at, 2), number(at, 3), number(at, 4),
                                          number(at, 5), number(at, 6), number(at, 7), number(at, 8), number(at, 9)};
            all.in_pixels *= conv.out[d];
            all.out_size[d] = conv.in[d];
        }
        return all;
    }
};
// That of the forward pass is made anew.
struct ForwardWalk {
    static TILEWISE_DEVICE Walk walk(const KernelConv& conv) { return forward_walk(conv); }
};

template <class Config, class Core>
struct ConvBlock : GatherConv<Config, Core> {
    using Base = GatherConv<Config, Core>;
    using Tiles = ConvTiles<Config>;
    using Base::args, Base::conv, Base::kData, Base::kForward, Base::kStreams, Base::kWeight, Base::k, Base::m, Base::n,
        Base::walk;
    using Kept = typename Either<kData, KeptWalk<Config::ndim, Tiles::kWide>, ForwardWalk>::type;
    static constexpr Index kMerge = Config::merge;
    static_assert(kMerge == 1 || (!kStreams && !Tiles::kWholeChunks && !Config::explicit_gemm));
    static_assert(!Config::explicit_gemm || !kData, "one walk");

    TILEWISE_DEVICE ConvBlock(const KernelArgs& kernel_args, const Kept& kept) : Base(kernel_args, 0, 0) {
        walk = kept.walk(conv);
        const Index positions = conv.images * walk.positions();
        m = kWeight ? kMerge * conv.k : positions;
        n = kMerge * (kWeight ? walk.taps() * Base::counted(conv.c) : args.n);
        k = kWeight ? positions : walk.taps() * kMerge * Base::counted(kForward ? conv.c : conv.k);
    }

    TILEWISE_DEVICE typename Tiles::Activation source(Index first_group) const {
        const KernelActivation& shape = kData ? conv.y : conv.x;
        const Index channels = kMerge * (kData ? conv.k : conv.c);
        const void* data = kWeight ? args.b.data : args.a.data;
        return {Base::template at_group<typename Tiles::Gathered>(data, first_group * shape.group_stride),
                shape,
                walk,
                conv.images,
                channels,
                Base::counted(channels)};
    }
    // Calls f(A's tile, B's tile).
    template <class F>
    TILEWISE_DEVICE void with_tiles(Index first_group, Index row, Index col, Index k_begin, F&& f) const {
        if constexpr (Config::explicit_gemm) {
            with_operand(OperandView{Base::written(first_group), kWeight ? args.n : m, k, Base::written_length()},
                         first_group, row, col, k_begin, f);
        } else {
            with_operand(source(first_group), first_group, row, col, k_begin, f);
        }
    }
    template <class Operand, class F>
    TILEWISE_DEVICE void with_operand(const Operand& gathered, Index first_group, Index row, Index col, Index k_begin,
                                      F&& f) const {
        if constexpr (kWeight) {
            const void* dy =
                Base::template at_group<typename Config::A>(args.a.data, first_group * conv.y.group_stride);
            const typename Tiles::B b(gathered, col, k_begin);
            if constexpr (Config::channels_last) {
                f(typename Tiles::A({dy, m, k, conv.y.pixel_stride}, row, k_begin), b);
            } else {
                const Index channels = kMerge * conv.k;
                const typename Tiles::Pixels pixels(dy, conv.y, Base::pixels_alone(), conv.images, channels, channels);
                f(typename Tiles::A(pixels, row, k_begin), b);
            }
        } else {
            const void* first = Base::template at_group<typename Config::B>(
                args.b.data, first_group * conv.k * weights_per_filter(conv));
            const typename Tiles::A a(gathered, row, k_begin);
            if constexpr (kMerge > 1) {
                const typename Tiles::Merged weights(first, conv, walk, kMerge);
                f(a, typename Tiles::B(weights, col, k_begin));
            } else if constexpr (kData) {
                const typename Tiles::Turned weights(first, conv, walk, Base::counted(conv.k));
                f(a, typename Tiles::B(weights, col, k_begin));
            } else if constexpr (Tiles::kWholeChunks) {
                const typename Tiles::Filters weights(first, conv, Base::counted(conv.c));
                f(a, typename Tiles::B(weights, col, k_begin));
            } else {
                f(a, typename Tiles::B({first, args.n, k, args.b.col_stride}, col, k_begin));
            }
        }
    }

    // Arguments are read anew ahead of the loop over k and after it: kept, they would take its registers.
    static TILEWISE_DEVICE void run_tile(const KernelArgs& args, const Kept& kept, const Work& work,
                                         const Blocks& blocks) {
        const SharedAddress shared = shared_start();
        const TilePlace& place = work.tile;
        const Index row = Index(place.tile_m) * Config::tile_m, col = Index(place.tile_n) * Config::tile_n;
        const Index first_group = place.batch * kMerge;
        Core core;
        {
            const ConvBlock block(reread(args), kept);
            const Index k_begin = Index(work.begin) * Config::tile_k, k_bound = Index(work.end) * Config::tile_k;
            const int steps = work.end - work.begin;
            const int last = int((k_bound < block.k ? k_bound : block.k) - k_begin - Index(steps - 1) * Config::tile_k);
            block.with_tiles(first_group, row, col, k_begin, [&](const auto& a, const auto& b) {
                MfmaLoop<Config, Core>{a, b, steps, last, shared}.run(core);
            });
        }
        const ConvBlock block(reread(args), kept);
        if (!BlockGemm<Config, Core>::combine(block.args, work, blocks, core)) return;
        const SharedAddress region = shared + core.warp * Core::Region::kBytes;
        if constexpr (kWeight && kMerge > 1) {
            Diagonal<Config, Core>{block.args, first_group, Index(place.k_part), block.m, block.n, row, col, region}
                .run(core);
        } else {
            // Merged groups follow each other along the columns of C.
            typename Base::Out(block.args, first_group, int(place.k_part), block.m, block.n, row, col, region,
                               block.rows_from(row), block.columns_from(col))
                .run(core);
        }
    }

    static TILEWISE_DEVICE Kept keep(const KernelConv& conv, Index residue) {
        if constexpr (kData) {
            return Kept(backward_walk(conv, residue));
        } else {
            return {};
        }
    }
    static TILEWISE_DEVICE ConvOrder order_of(const ConvBlock& block) {
        ConvOrder order(block.args, tile_count(block.m, Config::tile_m), tile_count(block.n, Config::tile_n));
        order.batch /= u32(kMerge);
        return order;
    }
    // The block's first tile that is not before `first`.
    static TILEWISE_DEVICE u32 next_tile(u32 first) {
        const u32 count = block_count(), mine = tile_number<Config>(block_index(), count);
        return mine >= first ? mine : mine + (first - mine + count - 1) / count * count;
    }
    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        const Index residues = kData ? class_count(args.conv) : 1;
        u32 first = 0;  // number of the walk's first tile
        TILEWISE_ROLLED
        for (Index residue = 0; residue < residues; ++residue) {
            const KernelArgs& now = reread(args);
            const Kept kept = keep(now.conv, residue);
            const ConvBlock all(now, kept);
            const ConvOrder order = order_of(all);
            const int steps = int(tile_count(all.k, Config::tile_k));
            const Blocks blocks{next_tile(first) - first, block_count()};
            typename WalkChoice<kStreams, ConvOrder>::type tiles(order, now, steps, blocks);
            Work work;
            TILEWISE_ROLLED
            while (tiles.next(work, [&](const TilePlace&) { return steps; })) {
                run_tile(args, kept, work, blocks);
                sync_block();  // the next tile takes the shared memory
            }
            first += order.total();
        }
    }
};

}  // namespace tilewise::hip
