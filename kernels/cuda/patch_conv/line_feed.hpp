// SPDX-License-Identifier: MIT
// How the patches of patch_conv.hpp come to shared memory where threads copy them, line by line (patch.hpp): a feed. The other
// one (patch_box_conv.hpp) leaves it to the copy engine. Copies are asynchronous; whoever reads a patch waits for it here first.
#pragma once
#include "../../common/patch_conv_args.hpp"
#include "../../gpu/patch.hpp"

namespace tilewise::cuda::patch_conv {

template <class Config>
struct LineFeed {
    static constexpr bool kBoxes = false;
    static constexpr int kBuffers = Config::stages < 1 ? 1 : Config::stages;
    using T = typename Config::A;

    const PatchLines<T, Config::threads> lines;

    TILEWISE_DEVICE explicit LineFeed(const PatchConvLayout& plan) : lines(plan.patch) {}
    TILEWISE_DEVICE void prepare(const PatchConvLayout&, SharedAddress) const {}
    // The channels of a tile from `channel` on, to the buffer with this index. Every step commits a group, empty or not, so that
    // counting groups is counting steps.
    TILEWISE_DEVICE void copy(const KernelArgs& args, const PatchConvArgs& launch, const KernelActivation& from,
                              SharedAddress shared, int index, Index channel, const PatchOrigin& origin) const {
        const void* first = static_cast<const typename T::Storage*>(args.a.data) + channel;
        lines.copy(shared + launch.plan.patches + index * launch.plan.patch_bytes, first, launch.axes,
                   int(args.conv.images), from, origin);
    }
    // For the patch of the next step; a barrier of the block must follow before it is read.
    TILEWISE_DEVICE void wait(const PatchConvLayout&, SharedAddress, int) const {
        wait_copies<(kBuffers > 1 ? kBuffers - 2 : 0)>();
    }
};

}  // namespace tilewise::cuda::patch_conv
