// SPDX-License-Identifier: MIT
// Convolution in any direction as a product whose operands are gathered on their way to shared memory (gather_tile.hpp); the
// loop over k, the arithmetic and the way out are those of GEMM (mainloop.hpp, drain.hpp).
//
// Tile walk   Blocks take tiles of the GEMM view: column tiles fastest, then groups, which lie side by side in memory, then
//             rows of tiles; backward data goes through its residue classes one after the other, and a tile belongs to one
//             class, so that no tap is wasted. With split_k every part of k is a tile of its own; with stream_k blocks
//             share tiles, as in GEMM.
// Operands    forward: rows are output pixels, k is (tap, channel), weights are a plain matrix. Backward data: rows are pixels
//             of dx, k is (tap, output channel), weights are looked up. Backward weight: rows are output channels, columns
//             are (tap, channel), k is the output pixels; dy is a plain matrix if channels come last.
// Channels    Where pixels of 16-bit elements begin anywhere (a vector of 1, channels last), every tap takes whole chunks of 16
//             bytes of shared memory, filled up with zeros: k counts those (forward and backward data), or the columns do
//             (backward weight). No copy of a tensor is made.
// Bytes       A tile reads tile_m x k elements of the activation and tile_n x k of the weights through the L2 cache: each
//             input is fetched once for every tap that meets it.
// With explicit_gemm a kernel before this one writes the gathered operand to the workspace (expand), from where it is read as
// a plain matrix.
// The arithmetic is 2 m n k; what of it falls into the padding is multiplied by zero.
#pragma once
#include "../common/channel_chunks.hpp"
#include "../common/packing.hpp"
#include "block_gemm.hpp"
#include "gather_tile.hpp"

namespace tilewise::gpu {

template <class Config>
struct ConvTiles {
    static constexpr bool kForward = Config::direction == Direction::forward,
                          kWeight = Config::direction == Direction::backward_weight;
    // The activation that is read through the taps: dy of backward data, x otherwise.
    using Gathered = typename Either<kWeight, typename Config::B, typename Config::A>::type;
    // The taps in each dimension, where they are as many and known; residue classes of backward data meet fewer of them.
    static constexpr bool kSame = Config::ct_filter[2] == Config::ct_filter[1] || Config::ndim == 1,
                          kAll = kSame && (Config::ct_filter[1] == Config::ct_filter[0] || Config::ndim < 3);
    static constexpr int kCompiledIn = Config::filter_3x3   ? 3
                                       : Config::filter_1x1 ? 1
                                       : kAll               ? Config::ct_filter[2]
                                                            : 0;
    static constexpr int kTaps = kForward || kWeight ? kCompiledIn : 0;
    static constexpr bool kWide = Config::split_image;
    // Whether the channels that are gathered are counted in whole chunks.
    static constexpr bool kAnywhere = Config::channels_last && !Config::explicit_gemm && Config::A::bytes == 2;
    static constexpr bool kWholeChunks =
        kAnywhere && (kWeight || Config::vector_a == 1) && (!(kForward || kWeight) || Config::vector_b == 1);
    using Activation = Patches<Gathered, Config::ndim, kWeight, kTaps, kWide, kWholeChunks>;
    // dy of backward weight with channels first: pixels without taps.
    using Pixels = Patches<typename Config::A, Config::ndim, true, 0, kWide>;
    using Turned = Weights<typename Config::B, Config::ndim, kWide, kAnywhere>;

    // Channels-first activations are contiguous along pixels.
    static constexpr bool kRowsAlongK = Config::channels_last, kPixelsAlongK = !Config::channels_last;
    template <class T, class Source, int extent, bool along_k, int vector>
    using Gather = typename GatherChoice<T, Source, extent, Config::tile_k, along_k, vector, Config::threads>::type;
    template <class T, int extent, bool along_k, int vector>
    using Matrix = typename TileChoice<T, extent, Config::tile_k, along_k, vector, Config::threads>::type;

    using Lines = typename ProductTileChoice<typename Config::A, Config::tile_m, Config::tile_k, false,
                                             Config::vector_a, Config::threads>::type;
    using WeightA = typename Either<Config::channels_last, Lines,
                                    Gather<typename Config::A, Pixels, Config::tile_m, true, Config::vector_a>>::type;
    using RowsA =
        typename Either<Config::explicit_gemm, Matrix<typename Config::A, Config::tile_m, true, Config::vector_a>,
                        Gather<typename Config::A, Activation, Config::tile_m, kRowsAlongK, Config::vector_a>>::type;
    using A = typename Either<kWeight, WeightA, RowsA>::type;
    using WeightB =
        typename Either<Config::explicit_gemm, Matrix<typename Config::B, Config::tile_n, false, Config::vector_b>,
                        Gather<typename Config::B, Activation, Config::tile_n, kPixelsAlongK, Config::vector_b>>::type;
    using DataB = Gather<typename Config::B, Turned, Config::tile_n, false, Config::vector_b>;
    using ForwardB =
        typename Either<kWholeChunks,
                        Gather<typename Config::B, Filters<typename Config::B, kWide>, Config::tile_n, true, 1>,
                        Matrix<typename Config::B, Config::tile_n, true, Config::vector_b>>::type;
    using B = typename Either<kWeight, WeightB, typename Either<kForward, ForwardB, DataB>::type>::type;
};

template <class Config>
requires requires { Config::direction; }
struct OperandTiles<Config> : ConvTiles<Config> {};

// Rows of the product and the pixels of dx that they stand for.
template <int ndim, bool wide>
struct ClassRows {
    using Count = typename Counting<wide>::Count;
    static constexpr bool kEven = false;
    const Walk& walk;
    Index pixels;  // of an image
    Count first;
    PositionWalk<ndim, wide> positions;

    TILEWISE_DEVICE Index operator()(int row) const {
        Count at[kMaxKernelDims];
        const auto image = Index(positions.locate(first + Count(row), at));
        return image * pixels + walk.out_pixel(Index(at[0]), Index(at[1]), Index(at[2]));
    }
};

// Columns of backward weight that are counted in whole chunks of channels: those that fill up a chunk are nowhere.
struct ChunkColumns {
    static constexpr bool kEven = false;
    u32 first, channels;
    Divisor counted;

    TILEWISE_DEVICE bool exists(int col) const {
        u32 channel = first + u32(col);
        counted.divide(channel);
        return channel < channels;
    }
    TILEWISE_DEVICE Index operator()(int col) const {
        u32 channel = first + u32(col);
        const u32 tap = counted.divide(channel);
        return Index(tap * channels + channel);
    }
};

// The tiles of a walk: columns fastest, then groups, rows, parts of k.
struct ConvOrder {
    u32 rows, columns, batch, parts;

    TILEWISE_DEVICE ConvOrder(const KernelArgs& args, u32 row_tiles, u32 column_tiles)
        : rows(row_tiles),
          columns(column_tiles),
          batch(u32(args.batch)),
          parts(u32(args.split_k < 1 ? 1 : args.split_k)) {}
    TILEWISE_DEVICE u32 total() const { return rows * columns * batch * parts; }
    TILEWISE_DEVICE TilePlace locate(u32 id) const {
        TilePlace place;
        place.tile_n = id % columns;
        id /= columns;
        place.batch = id % batch;
        id /= batch;
        place.tile_m = id % rows;
        place.k_part = id / rows;
        return place;
    }
};

template <class Config, class Core>
struct GatherConv {
    using Tiles = ConvTiles<Config>;
    using Shape = BlockShape<Config>;
    using Loop = Mainloop<Config, Core>;
    static constexpr bool kForward = Tiles::kForward, kWeight = Tiles::kWeight, kData = !kForward && !kWeight;
    static constexpr bool kStreams = Config::stream_k != StreamK::off;
    static_assert(!kStreams || !kData, "tiles that are shared out by steps have all the same number of them");
    using Rows = typename Either<kData, ClassRows<Config::ndim, Tiles::kWide>, EvenRows>::type;
    using Columns = typename Either<kWeight && Tiles::kWholeChunks, ChunkColumns, EvenColumns>::type;
    using Out = Drain<Config, Core, Rows, Columns>;

    const KernelArgs& args;
    const KernelConv& conv;
    Walk walk;
    Index m, n, k;        // of the walk's product
    Index written_first;  // explicit_gemm: elements before those of this walk in the workspace

    TILEWISE_DEVICE GatherConv(const KernelArgs& kernel_args, Index residue, Index elements_before)
        : args(kernel_args),
          conv(kernel_args.conv),
          walk(kData ? backward_walk(kernel_args.conv, residue) : forward_walk(kernel_args.conv)),
          written_first(elements_before) {
        const Index positions = conv.images * walk.positions();
        m = kWeight ? conv.k : positions;
        n = kWeight ? walk.taps() * counted(conv.c) : args.n;
        k = kWeight ? positions : walk.taps() * counted(kForward ? conv.c : conv.k);
    }
    static TILEWISE_DEVICE Index counted(Index channels) {
        return Tiles::kWholeChunks ? whole_chunks(channels, Config::A::bytes) : channels;
    }

    template <class T>
    static TILEWISE_DEVICE const void* at_group(const void* data, Index elements) {
        return static_cast<const typename T::Storage*>(data) + elements;
    }
    TILEWISE_DEVICE typename Tiles::Activation activation(Index group) const {
        const KernelActivation& shape = kData ? conv.y : conv.x;
        const void* data = kWeight ? args.b.data : args.a.data;
        const Index channels = kData ? conv.k : conv.c;
        const Index elements = (conv.images - 1) * shape.image_stride + (walk.in_pixels - 1) * shape.pixel_stride +
                               (conv.groups - 1) * shape.group_stride + channels;
        return {at_group<typename Tiles::Gathered>(data, group * shape.group_stride),
                shape,
                walk,
                conv.images,
                channels,
                counted(channels),
                InnerChunks::of(data, elements * Gathered::bytes)};
    }
    TILEWISE_DEVICE InnerChunks weight_chunks() const {
        return InnerChunks::of(args.b.data, conv.groups * conv.k * weights_per_filter(conv) * Config::B::bytes);
    }
    // explicit_gemm: a matrix for each group, lines of k or, for backward weight, of n; behind the partial sums.
    using Gathered = typename Tiles::Gathered;
    TILEWISE_DEVICE Index written_lines() const { return kWeight ? k : m; }
    TILEWISE_DEVICE Index written_length() const { return kWeight ? args.n : k; }
    TILEWISE_DEVICE Index written_elements() const { return args.batch * written_lines() * written_length(); }
    TILEWISE_DEVICE char* written(Index group) const {
        const int parts = sums_apart<Config>() && args.split_k < 2 ? 1 : args.split_k;
        const Index sums =
            sums_apart<Config>() || parts > 1 ? whole_packs(args.m * args.n * args.batch * parts * 4) : 0;
        const Index before = written_first + group * written_lines() * written_length();
        return static_cast<char*>(args.workspace) + sums + before * Gathered::bytes;
    }

    // Any number of blocks of any size; a thread writes an access at a time.
    TILEWISE_DEVICE void write_gathered() const {
        constexpr int kVector = kWeight ? Config::vector_b : Config::vector_a, kBytes = kVector * Gathered::bytes;
        const Index per_line = written_length() / kVector, lines = written_lines(),
                    threads = Index(block_count()) * block_threads();
        const Index first = Index(block_index()) * block_threads() + thread_index();
        TILEWISE_ROLLED
        for (Index group = 0; group < args.batch; ++group) {
            const typename Tiles::Activation source = activation(group);
            char* to = written(group);
            TILEWISE_ROLLED
            for (Index at = first; at < lines * per_line; at += threads) {
                const Index line = quotient(at, per_line), element = (at - line * per_line) * kVector;
                const auto pixel = source.pixel(typename Tiles::Activation::Count(line));
                const auto tap = source.tap(typename Tiles::Activation::Count(element));
                Packet<kBytes> packet = zero_packet<kBytes>();
                if (source.is_inside(pixel, tap)) packet = load_global<kBytes>(source.address(pixel, tap));
                store_global<kBytes>(to + at * kBytes, packet);
            }
        }
    }

    // Every output pixel, where it is.
    TILEWISE_DEVICE Walk pixels_alone() const {
        Walk alone = walk;
        TILEWISE_UNROLL
        for (int d = 0; d < kMaxKernelDims; ++d) {
            alone.dim[d].in_step = 1, alone.dim[d].in_first = 0, alone.dim[d].in_size = conv.out[d];
            alone.dim[d].taps = 1;
        }
        return alone;
    }

    // Calls f(A's tile, B's tile).
    template <class F>
    TILEWISE_DEVICE void with_tiles(Index group, Index row, Index col, Index k_begin, F&& f) const {
        if constexpr (Config::explicit_gemm) {
            with_activation(OperandView{written(group), kWeight ? args.n : m, k, written_length()}, group, row, col,
                            k_begin, f);
        } else {
            with_activation(activation(group), group, row, col, k_begin, f);
        }
    }
    template <class Source, class F>
    TILEWISE_DEVICE void with_activation(const Source& source, Index group, Index row, Index col, Index k_begin,
                                         F&& f) const {
        if constexpr (kForward) {
            const void* weights = at_group<typename Config::B>(args.b.data, group * args.b.batch_stride);
            if constexpr (Tiles::kWholeChunks) {
                const Filters<typename Config::B, Tiles::kWide> filters(weights, conv, walk.taps(), counted(conv.c),
                                                                        weight_chunks());
                f(typename Tiles::A(source, row, k_begin), typename Tiles::B(filters, col, k_begin));
            } else {
                f(typename Tiles::A(source, row, k_begin),
                  typename Tiles::B({weights, args.n, k, args.b.col_stride}, col, k_begin));
            }
        } else if constexpr (kData) {
            const void* weights = at_group<typename Config::B>(args.b.data, group * conv.k * weights_per_filter(conv));
            const typename Tiles::Turned turned(weights, conv, walk, counted(conv.k), weight_chunks());
            f(typename Tiles::A(source, row, k_begin), typename Tiles::B(turned, col, k_begin));
        } else {
            const void* dy = at_group<typename Config::A>(args.a.data, group * conv.y.group_stride);
            if constexpr (Config::channels_last) {
                f(typename Tiles::A({dy, args.m, k, conv.y.pixel_stride}, row, k_begin),
                  typename Tiles::B(source, col, k_begin));
            } else {
                const typename Tiles::Pixels pixels(dy, conv.y, pixels_alone(), conv.images, conv.k, conv.k, {});
                f(typename Tiles::A(pixels, row, k_begin), typename Tiles::B(source, col, k_begin));
            }
        }
    }

    TILEWISE_DEVICE Rows rows_from(Index row) const {
        if constexpr (kData) {
            return {walk, conv.in[0] * conv.in[1] * conv.in[2], typename Rows::Count(row),
                    PositionWalk<Config::ndim, Tiles::kWide>(walk)};
        } else {
            return {row};
        }
    }

    TILEWISE_DEVICE Columns columns_from(Index col) const {
        if constexpr (Columns::kEven) {
            return {col};
        } else {
            return {u32(col), u32(conv.c), Divisor(u32(counted(conv.c)))};
        }
    }

    TILEWISE_DEVICE void run_tile(const Work& work, const Blocks& blocks) const {
        const SharedAddress shared = shared_start();
        const TilePlace& place = work.tile;
        const Index row = Index(place.tile_m) * Config::tile_m, col = Index(place.tile_n) * Config::tile_n;
        const Index k_begin = Index(work.begin) * Config::tile_k, k_bound = Index(work.end) * Config::tile_k;
        const int steps = work.end - work.begin;
        const int last = int((k_bound < k ? k_bound : k) - k_begin - Index(steps - 1) * Config::tile_k);
        Core core;
        with_tiles(place.batch, row, col, k_begin, [&](const auto& a, const auto& b) {
            Loop{a, b, steps, last, shared}.run(core);
        });
        if (!BlockGemm<Config, Core>::combine(args, work, blocks, core)) return;
        const SharedAddress region = shared + core.warp * Out::Region::kBytes;
        Out(args, Index(place.batch), int(place.k_part), m, n, row, col, region, rows_from(row), columns_from(col))
            .run(core);
    }

    // The tiles of this walk; `blocks` counts from the one that takes the first.
    TILEWISE_DEVICE void run_tiles(const ConvOrder& order, const Blocks& blocks) const {
        const int steps = int(tile_count(k, Config::tile_k));
        typename WalkChoice<kStreams, ConvOrder>::type tiles(order, args, steps, blocks);
        Work work;
        TILEWISE_ROLLED
        while (tiles.next(work, [&](const TilePlace&) { return steps; })) {
            run_tile(work, blocks);
            sync_block();  // the next tile takes the shared memory
        }
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        griddep_launch();
        griddep_wait();
        u32 first = 0;  // number of the walk's first tile
        each_walk(args, [&](const GatherConv& conv) {
            const ConvOrder order(args, tile_count(conv.m, Config::tile_m), tile_count(conv.n, Config::tile_n));
            conv.run_tiles(order, {next_id(first) - first, block_count()});
            first += order.total();
        });
    }
    // Before it: writes the operand that is read from the workspace.
    static TILEWISE_DEVICE void expand(const KernelArgs& args) {
        griddep_launch();
        griddep_wait();
        each_walk(args, [](const GatherConv& conv) { conv.write_gathered(); });
    }
    template <class F>
    static TILEWISE_DEVICE void each_walk(const KernelArgs& args, F&& f) {
        const Index residues = kData ? class_count(args.conv) : 1;
        Index elements = 0;
        TILEWISE_ROLLED
        for (Index residue = 0; residue < residues; ++residue) {
            const GatherConv conv(args, residue, elements);
            f(conv);
            elements += conv.written_elements();
        }
    }
    // This block's first id that is not before `first`.
    static TILEWISE_DEVICE u32 next_id(u32 first) {
        const u32 mine = block_index(), count = block_count();
        return mine >= first ? mine : mine + (first - mine + count - 1) / count * count;
    }
};

}  // namespace tilewise::gpu

#define TILEWISE_GPU_EXPAND(Config, Kernel)                                                       \
    extern "C" __global__ void tilewise_pack(const __grid_constant__ tilewise::KernelArgs args) { \
        if constexpr (Config::explicit_gemm) Kernel::expand(args);                                \
    }
