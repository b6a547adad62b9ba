// SPDX-License-Identifier: MIT
// Convolution of groups too narrow for a tile: `merge` neighbouring groups are one product, whose weights are zero between channels of
// unlike groups. Activations, biases and results of neighbouring groups lie side by side, so these are those of one wide group; weights
// are looked up, and backward weight keeps the squares of sums on the diagonal alone.
//
// Tile walk   As in ../../gpu/gather_conv.hpp, over groups / merge products.
// Bytes       Activations are read as there, for all merged groups at once; weights only where groups meet themselves.
// The arithmetic is `merge` times that of the groups one by one, most of it by zero.
#pragma once
#include "../../gpu/gather_conv.hpp"

namespace tilewise::hip {

using namespace gpu;

// [output channel][tap][input channel] of merged groups as a matrix that is zero off the diagonal: rows of k are (tap, input channel)
// of the forward direction, and columns are output channels; of backward data rows are (tap, output channel), and columns input channels.
template <class T, int ndim, bool forward, bool wide>
struct MergedWeights {
    static constexpr bool kUnaligned = false;
    using Count = typename Counting<wide>::Count;
    struct Outer {
        Index offset;  // of the column in its group
        Count group;
        bool exists;
    };
    struct Inner {
        Index offset;
        Count group;
        bool exists;
        const char* at;
    };

    const char* data;  // of the first group
    Index filter_bytes, tap_bytes;
    Count rows, columns;
    typename Counting<wide>::By by_input, by_output;  // channels of a group
    TapWalk<ndim, 0, wide> taps;
    Count tap_first[kMaxKernelDims], tap_step[kMaxKernelDims], size[kMaxKernelDims];

    TILEWISE_DEVICE MergedWeights(const void* first, const KernelConv& conv, const Walk& walk, Index merge)
        : data(static_cast<const char*>(first)),
          filter_bytes(weights_per_filter(conv) * T::bytes),
          tap_bytes(conv.c * T::bytes),
          rows(Count(walk.taps() * merge * (forward ? conv.c : conv.k))),
          columns(Count(merge * (forward ? conv.k : conv.c))),
          by_input(Count(conv.c)),
          by_output(Count(conv.k)),
          taps(walk, merge * (forward ? conv.c : conv.k)) {
        TILEWISE_UNROLL
        for (int d = 0; d < kMaxKernelDims; ++d) {
            tap_first[d] = Count(walk.dim[d].tap_first), tap_step[d] = Count(walk.dim[d].tap_step);
            size[d] = Count(conv.filter[d]);
        }
    }
    // An output channel has a filter of its own, counted over all groups; an input channel is one of its group's.
    TILEWISE_DEVICE Index output_offset(Count channel, Count& group) const {
        Count in_group = channel;
        group = by_output.divide(in_group);
        return Index(channel) * filter_bytes;
    }
    TILEWISE_DEVICE Index input_offset(Count channel, Count& group) const {
        group = by_input.divide(channel);
        return Index(channel) * T::bytes;
    }
    TILEWISE_DEVICE Outer outer(Count column) const {
        Outer o;
        o.offset = forward ? output_offset(column, o.group) : input_offset(column, o.group);
        o.exists = column < columns;
        return o;
    }
    TILEWISE_DEVICE Inner inner(Count index) const {
        Count at[kMaxKernelDims];
        const Count channel = taps.locate(index, at);
        Count tap = 0;
        TILEWISE_UNROLL
        for (int d = kMaxKernelDims - ndim; d < kMaxKernelDims; ++d) {
            tap = tap * size[d] + tap_first[d] + at[d] * tap_step[d];
        }
        Inner i;
        i.offset = forward ? input_offset(channel, i.group) : output_offset(channel, i.group);
        i.at = data + tap * tap_bytes;
        i.exists = index < rows;
        return i;
    }
    static TILEWISE_DEVICE const char* address(const Outer& o, const Inner& i) { return i.at + i.offset + o.offset; }
    static TILEWISE_DEVICE bool is_inside(const Outer& o, const Inner& i) {
        return o.exists && i.exists && o.group == i.group;
    }
    static TILEWISE_DEVICE int valid(const Outer& o, const Inner& i) { return is_inside(o, i) ? T::bytes : 0; }
};

template <class Config, class Core>
struct MergedConv : GatherConv<Config, Core> {
    using Base = GatherConv<Config, Core>;
    using Tiles = ConvTiles<Config>;
    using Base::args, Base::conv, Base::kData, Base::kForward, Base::kWeight, Base::k, Base::m, Base::n, Base::walk;
    static constexpr Index kMerge = Config::merge;
    static_assert(!Base::kStreams && !Tiles::kWholeChunks && !Config::explicit_gemm);

    TILEWISE_DEVICE MergedConv(const KernelArgs& kernel_args, Index residue) : Base(kernel_args, residue, 0) {
        n *= kMerge;
        (kWeight ? m : k) *= kMerge;
    }

    TILEWISE_DEVICE typename Tiles::Activation activation(Index first_group) const {
        const KernelActivation& shape = kData ? conv.y : conv.x;
        const Index channels = kMerge * (kData ? conv.k : conv.c);
        const void* data = kWeight ? args.b.data : args.a.data;
        return {Base::template at_group<typename Tiles::Gathered>(data, first_group * shape.group_stride),
                shape,
                walk,
                conv.images,
                channels,
                channels,
                {}};
    }
    // Calls f(A's tile, B's tile).
    template <class F>
    TILEWISE_DEVICE void with_tiles(Index first_group, Index row, Index col, Index k_begin, F&& f) const {
        const typename Tiles::Activation source = activation(first_group);
        if constexpr (!kWeight) {
            const void* first = Base::template at_group<typename Config::B>(
                args.b.data, first_group * conv.k * weights_per_filter(conv));
            const typename Tiles::Merged weights(first, conv, walk, kMerge);
            f(typename Tiles::A(source, row, k_begin), typename Tiles::B(weights, col, k_begin));
        } else {
            const void* dy =
                Base::template at_group<typename Config::A>(args.a.data, first_group * conv.y.group_stride);
            if constexpr (Config::channels_last) {
                f(typename Tiles::A({dy, m, k, conv.y.pixel_stride}, row, k_begin),
                  typename Tiles::B(source, col, k_begin));
            } else {
                const Index channels = kMerge * conv.k;
                const typename Tiles::Pixels pixels(dy, conv.y, Base::pixels_alone(), conv.images, channels, channels,
                                                    {});
                f(typename Tiles::A(pixels, row, k_begin), typename Tiles::B(source, col, k_begin));
            }
        }
    }

    // Of backward weight: sums of a row and a column of the same group, to dw or, by parts, to the workspace.
    TILEWISE_DEVICE void write_diagonal(const Core& core, Index first_group, Index part, Index row, Index col,
                                        SharedAddress region) const {
        using Region = typename Core::Region;
        const bool partial = sums_apart<Config>() || args.split_k > 1;
        const Divisor by_output{u32(conv.k)}, by_input{u32(conv.c)}, by_tap{u32(kMerge)};
        TILEWISE_ROLLED
        for (int pass = 0; pass < Core::kPasses; ++pass) {
            core.put(pass, region);
            sync_warp();
            TILEWISE_ROLLED
            for (int e = lane_index(); e < Core::kRegionRows * Core::kRegionCols; e += kArchLanes) {
                const int r = e / Core::kRegionCols, c = e % Core::kRegionCols;
                u32 output = u32(row + core.pass_row(pass) + r * Core::kRowStep),
                    input = u32(col + core.pass_col(pass) + c);
                if (output >= m || input >= n) continue;
                u32 group = by_input.divide(input);  // of (tap, group); input is a channel now
                const u32 tap = by_tap.divide(group);
                if (by_output.divide(output) != group) continue;
                const Index batch = first_group + group, column = Index(tap) * conv.c + input;
                const float sum = load_shared_float(region + Region::at(r, c));
                if (partial) {
                    const Index matrix = part * args.batch + batch;
                    static_cast<float*>(args.workspace)[(matrix * args.m + output) * args.n + column] = sum;
                } else {
                    using Out = typename Config::Out;
                    store<Out>(args, finish<ChainOf<Config>, Out>(args, sum, batch, output, column), batch, output,
                               column);
                }
            }
            sync_warp();
        }
    }

    TILEWISE_DEVICE void run_tile(const Work& work) const {
        const SharedAddress shared = shared_start();
        const TilePlace& place = work.tile;
        const Index row = Index(place.tile_m) * Config::tile_m, col = Index(place.tile_n) * Config::tile_n;
        const Index k_begin = Index(work.begin) * Config::tile_k, k_bound = Index(work.end) * Config::tile_k;
        const Index first_group = place.batch * kMerge;
        const int steps = work.end - work.begin;
        const int last = int((k_bound < k ? k_bound : k) - k_begin - Index(steps - 1) * Config::tile_k);
        Core core;
        with_tiles(first_group, row, col, k_begin, [&](const auto& a, const auto& b) {
            typename Base::Loop{a, b, steps, last, shared}.run(core);
        });
        const SharedAddress region = shared + core.warp * Core::Region::kBytes;
        if constexpr (kWeight) {
            write_diagonal(core, first_group, Index(place.k_part), row, col, region);
        } else {
            // Groups follow each other along the columns of C.
            typename Base::Out(args, first_group, int(place.k_part), m, n, row, col, region, Base::rows_from(row),
                               EvenColumns{col})
                .run(core);
        }
    }

    static TILEWISE_DEVICE void run(const KernelArgs& args) {
        griddep_launch();
        griddep_wait();
        const Index residues = kData ? class_count(args.conv) : 1;
        u32 first = 0;  // number of the walk's first tile
        TILEWISE_ROLLED
        for (Index residue = 0; residue < residues; ++residue) {
            const MergedConv conv(args, residue);
            ConvOrder order(args, tile_count(conv.m, Config::tile_m), tile_count(conv.n, Config::tile_n));
            order.batch /= u32(kMerge);
            const int steps = int(tile_count(conv.k, Config::tile_k));
            typename WalkChoice<false, ConvOrder>::type tiles(order, args, steps,
                                                              {Base::next_id(first) - first, block_count()});
            Work work;
            TILEWISE_ROLLED
            while (tiles.next(work, [&](const TilePlace&) { return steps; })) {
                conv.run_tile(work);
                sync_block();  // the next tile takes the shared memory
            }
            first += order.total();
        }
    }
};

}  // namespace tilewise::hip
