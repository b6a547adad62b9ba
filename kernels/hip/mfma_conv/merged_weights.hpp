// SPDX-License-Identifier: MIT
// Groups too narrow for a tile: `merge` neighbouring groups are one product, whose weights are zero between channels of unlike groups.
// Activations, biases and results of neighbouring groups lie side by side, so these are those of one wide group; weights are looked up,
// and backward weight keeps the squares of sums on the diagonal alone.
// The arithmetic is `merge` times that of the groups one by one, most of it by zero.
#pragma once
#include "../../gpu/gather_conv.hpp"
#include "../bounded_source.hpp"

namespace tilewise::hip {

// [output channel][tap][input channel] of merged groups as a matrix that is zero off the diagonal: rows of k are (tap, input channel)
// of the forward direction, and columns are output channels; of backward data rows are (tap, output channel), and columns input channels.
template <class T, int ndim, bool forward, bool wide>
struct MergedWeights : WeightSource<T, ndim, 1, wide> {
    using Base = WeightSource<T, ndim, 1, wide>;
    using typename Base::Count, typename Base::Far, typename Base::Offset;
    struct Outer {
        Offset at;
        Count group;
    };
    struct Inner {
        Offset at;
        Count group;
    };

    Count merged;                     // columns
    Steps<wide> by_input, by_output;  // channels of a group

    TILEWISE_DEVICE MergedWeights(const void* first, const KernelConv& conv, const Walk& walk, Index merge)
        : Base(first, conv, walk, merge * (forward ? conv.c : conv.k)),
          merged(Count(merge * (forward ? conv.k : conv.c))),
          by_input(Count(conv.c)),
          by_output(Count(conv.k)) {}

    // An output channel has a filter of its own, counted over all groups; an input channel is one of its group's.
    TILEWISE_DEVICE Offset output_at(Count channel, Count& group) const {
        Count in_group = channel;
        group = by_output.divide(in_group);
        return Offset(channel) * this->filter_bytes;
    }
    TILEWISE_DEVICE Offset input_at(Count channel, Count& group) const {
        group = by_input.divide(channel);
        return Offset(channel) * T::bytes;
    }
    TILEWISE_DEVICE Outer outer(Count, Count column) const {
        Outer o;
        o.at = forward ? output_at(column, o.group) : input_at(column, o.group);
        if (column >= merged) o.group = ~Count(0);  // of none
        return o;
    }
    TILEWISE_DEVICE Inner inner(Count, Count index) const {
        Count at[ndim];
        const Count channel = this->taps.locate(index, at);
        Inner i;
        i.at = forward ? input_at(channel, i.group) : output_at(channel, i.group);
        i.at += Offset(this->tap_number(at)) * this->tap_bytes;
        return i;
    }
    static TILEWISE_DEVICE bool has(const Inner&, int) { return true; }
    static TILEWISE_DEVICE Offset offset(const Outer& o, const Inner& i) {
        return o.group == i.group ? o.at + i.at : Far::kNowhere;
    }
    static TILEWISE_DEVICE Offset lane_offset(const Outer& o, const Inner& i) {
        return o.group == i.group ? o.at : Far::kNowhere;
    }
    static TILEWISE_DEVICE Offset common(const Inner& i) { return i.at; }
};

// The way out of backward weight: sums of a row and a column of the same group, to dw or, by parts, to the workspace.
template <class Config, class Core>
struct Diagonal {
    using Region = typename Core::Region;
    using Out = typename Config::Out;
    static constexpr Index kMerge = Config::merge;

    const KernelArgs& args;
    Index first_group, part, m, n, row, col;
    SharedAddress region;  // of this wave

    TILEWISE_DEVICE void run(const Core& core) const {
        const bool partial = sums_apart<Config>() || args.split_k > 1;
        const Divisor by_output{u32(args.conv.k)}, by_input{u32(args.conv.c)}, by_tap{u32(kMerge)};
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
                const Index batch = first_group + group, column = Index(tap) * args.conv.c + input;
                const float sum = load_shared_float(region + Region::at(r, c));
                if (partial) {
                    const Index matrix = part * args.batch + batch;
                    static_cast<float*>(args.workspace)[(matrix * args.m + output) * args.n + column] = sum;
                } else {
                    store<Out>(args, finish<ChainOf<Config>, Out>(args, sum, batch, output, column), batch, output,
                               column);
                }
            }
            sync_warp();
        }
    }
};

}  // namespace tilewise::hip
