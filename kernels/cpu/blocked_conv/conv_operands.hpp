// SPDX-License-Identifier: MIT
// The operands of convolution as a matrix product (conv.hpp): which classes of rows there are, and where the activations and
// the weights of each come from: gathered (conv_sources.hpp), written out whole in the workspace, or packed ahead.
#pragma once
#include "../product.hpp"
#include "conv_sources.hpp"

namespace tilewise::cpu::blocked_conv {

template <class Config>
struct ConvOperands {
    using P = Product<Config>;
    using A = typename Config::A;
    using B = typename Config::B;
    using Nest = typename P::Nest;
    using Acc = typename P::Acc;
    static constexpr Direction kDirection = Config::direction;
    static constexpr bool kForward = kDirection == Direction::forward,
                          kWeight = kDirection == Direction::backward_weight;
    static constexpr bool kPackedAhead = P::kPackedAhead;
    static constexpr bool kExplicit = Config::explicit_gemm;
    // Sums of several chunks of images meet in the workspace, like those of two stages.
    static constexpr bool kTwoStages = Config::two_stage || (kWeight && Config::split_image);
    static_assert(!(kPackedAhead && kWeight), "backward weight reads no weights that could be packed ahead");

    // Both activations of backward weight are gathered by position: k.
    using Gathered = Patches<typename ConditionalType<kWeight, B, A>::type, !kWeight, Config::inner_taps>;
    using Written = Operand<typename Gathered::Element>;  // explicit_gemm: the same, from the workspace
    using Activation = typename ConditionalType<kExplicit, Written, Gathered>::type;
    using Weights = typename ConditionalType<kForward, Operand<B>, TurnedWeights<B>>::type;

    // A residue class of backward data; everything, in the other directions.
    struct Class {
        Walk walk;
        Index rows;          // of the product, of one group
        Index k;             // its reduction
        Index packed_words;  // of its weights packed ahead, of one group
    };
    static TILEWISE_INLINE Index classes(const KernelArgs& args) {
        return kDirection == Direction::backward_data ? class_count(args.conv) : 1;
    }
    TILEWISE_OUTER static Class class_of(const KernelArgs& args, Index index) {
        const KernelConv& conv = args.conv;
        Class c = {};
        c.walk = kDirection == Direction::backward_data ? backward_walk(conv, index) : forward_walk(conv);
        const Index positions = conv.images * c.walk.positions();
        c.rows = kWeight ? conv.k : positions;
        c.k = kWeight ? positions : c.walk.taps() * (kForward ? conv.c : conv.k);
        c.packed_words = ceil_div(args.n, Nest::kCols) * Nest::panel_words(c.k);
        return c;
    }

    // One group has so many words of weights in panels.
    static TILEWISE_INLINE Index packed_ahead_words(const KernelArgs& args) {
        Index words = 0;
        for (Index i = 0; i < classes(args); ++i) words += class_of(args, i).packed_words;
        return words;
    }

    // The tensors that are gathered from: x, except in backward data.
    static TILEWISE_INLINE const KernelActivation& gathered_shape(const KernelConv& conv) {
        return kDirection == Direction::backward_data ? conv.y : conv.x;
    }
    static TILEWISE_INLINE Index gathered_channels(const KernelConv& conv) {
        return kDirection == Direction::backward_data ? conv.k : conv.c;
    }
    static TILEWISE_INLINE Gathered gathered(const KernelArgs& args, const Walk& walk, Index group) {
        const KernelConv& conv = args.conv;
        return Gathered::make(kWeight ? args.b.data : args.a.data, group, gathered_shape(conv), gathered_channels(conv),
                              walk, conv.images);
    }

    // explicit_gemm: [group][row, classes one after the other][k], or [group][k][n] for backward weight; after any partial
    // sums.
    static TILEWISE_INLINE typename Gathered::Storage* written(const KernelArgs& args, Index group, Index first_row) {
        const Index sums = uses_partials(args) ? args.split_k * args.batch * args.m * args.n : 0;
        auto* matrix = reinterpret_cast<typename Gathered::Storage*>(static_cast<Acc*>(args.workspace) + sums);
        return matrix + (kWeight ? group * args.k * args.n : (group * args.m + first_row) * args.k);
    }
    static TILEWISE_INLINE Written written_operand(const KernelArgs& args, Index group, Index first_row) {
        const auto* p = written(args, group, first_row);
        const auto* end = written(args, args.batch, 0);
        return kWeight ? Written{p, 1, args.n, end} : Written{p, args.k, 1, end};
    }
    // The operand from a row (position) or column on.
    static TILEWISE_INLINE Activation activation(const KernelArgs& args, const Class& c, Index group, Index first_row,
                                                 Index position, Index column) {
        if constexpr (kExplicit) {
            return written_operand(args, group, first_row).at(kWeight ? column : position, 0);
        } else {
            return gathered(args, c.walk, group).from(position, column);
        }
    }
    static TILEWISE_INLINE Weights weights(const KernelArgs& args, const Class& c, Index group, Index column) {
        const Index filter = weights_per_filter(args.conv);
        const auto* all = static_cast<const typename B::Storage*>(args.b.data);
        const auto* p = all + group * args.conv.k * filter;
        const auto* limit = all + args.conv.groups * args.conv.k * filter;
        if constexpr (kForward) {
            return Operand<B>{p, filter, 1, limit}.at(column, 0);
        } else {
            return {p, limit, &args.conv, &c.walk, column};
        }
    }

    static TILEWISE_INLINE bool uses_partials(const KernelArgs& args) { return kTwoStages || args.split_k > 1; }
};

}  // namespace tilewise::cpu::blocked_conv
