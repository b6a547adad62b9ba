// SPDX-License-Identifier: MIT
// split_image of conv.hpp: the images of a convolution in chunks whose tensors stay below 2^31 elements each.
#pragma once
#include "../../common/conv_walk.hpp"
#include "../types.hpp"

namespace tilewise::cpu::blocked_conv {

inline constexpr Index kSplitImageElements = Index(1) << 31;  // what every tensor of a chunk stays below

template <class Config>
struct ConvChunks {
    static constexpr bool kForward = Config::direction == Direction::forward,
                          kWeight = Config::direction == Direction::backward_weight;

    static TILEWISE_INLINE Index chunk_images(const KernelConv& conv) {
        const Index largest = conv.x.image_stride > conv.y.image_stride ? conv.x.image_stride : conv.y.image_stride;
        const Index images = (kSplitImageElements - 1) / largest;
        return images < 1 ? 1 : least(images, conv.images);
    }
    // The problem with only some of its images.
    static TILEWISE_INLINE KernelArgs chunk_args(const KernelArgs& args, Index first, Index images) {
        KernelArgs chunk = args;
        const KernelActivation& x = args.conv.x;
        const KernelActivation& y = args.conv.y;
        chunk.conv.images = images;
        const auto move = [&](void* data, Index elements) { return static_cast<char*>(data) + elements * first; };
        const bool data = Config::direction == Direction::backward_data;
        chunk.a.data = move(args.a.data, (kForward ? x : y).image_stride * kBytes<typename Config::A>);
        if (kWeight) chunk.b.data = move(args.b.data, x.image_stride * kBytes<typename Config::B>);
        const Index out = (data ? x : y).image_stride * kBytes<typename Config::Out>;
        if (!kWeight) chunk.c.data = move(args.c.data, out);
        for (auto& d : chunk.d) d = d && !kWeight ? move(const_cast<void*>(d), out) : d;
        if (kWeight && first > 0) chunk.beta = 1.0f;  // on top of what the earlier chunks left in the workspace
        return chunk;
    }

    // Calls visit(the problem with some of its images, the number of its first row) for each chunk.
    template <class Visit>
    static TILEWISE_INLINE void each_chunk(const KernelArgs& args, Visit visit) {
        if constexpr (!Config::split_image || Config::explicit_gemm) return visit(args, Index(0));
        const Index step = chunk_images(args.conv), rows = args.m / args.conv.images;
        for (Index first = 0; first < args.conv.images; first += step) {
            visit(chunk_args(args, first, least(step, args.conv.images - first)), kWeight ? 0 : first * rows);
        }
    }
};

}  // namespace tilewise::cpu::blocked_conv
