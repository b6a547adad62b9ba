// SPDX-License-Identifier: MIT
// How the patches of halo_conv.hpp come to shared memory where threads copy them, line by line (halo_patch.hpp): a feed. The other
// one (halo_box_conv.hpp) leaves it to the copy engine. Copies are asynchronous; whoever reads a patch waits for it here first.
#pragma once
#include "../common/halo_plan.hpp"
#include "halo_patch.hpp"

namespace tilewise::cuda {

template <class Config>
struct HaloLineFeed {
    static constexpr bool kBoxes = false;
    static constexpr int kBuffers = Config::stages < 1 ? 1 : Config::stages;
    using T = typename Config::A;

    const HaloLines<T, Config::threads> lines;

    TILEWISE_DEVICE explicit HaloLineFeed(const HaloPlan& plan) : lines(plan.patch) {}
    TILEWISE_DEVICE void prepare(const HaloPlan&, SharedAddress) const {}
    // The channels of a tile from `channel` on, to the buffer with this index. Every step commits a group, empty or not, so that
    // counting groups is counting steps.
    TILEWISE_DEVICE void copy(const KernelArgs& args, const HaloLaunch& launch, const KernelActivation& from,
                              SharedAddress shared, int index, Index channel, const HaloOrigin& origin) const {
        const void* first = static_cast<const typename T::Storage*>(args.a.data) + channel;
        lines.copy(shared + launch.plan.patches + index * launch.plan.patch_bytes, first, launch.axes,
                   int(args.conv.images), from, origin);
    }
    // For the patch of the next step; a barrier of the block must follow before it is read.
    TILEWISE_DEVICE void wait(const HaloPlan&, SharedAddress, int) const {
        wait_copies<(kBuffers > 1 ? kBuffers - 2 : 0)>();
    }
};

}  // namespace tilewise::cuda
