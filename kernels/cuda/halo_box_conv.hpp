// SPDX-License-Identifier: MIT
// halo_conv.hpp with patches that the copy engine stages: one thread asks for a box of pixels of all the tile's channels, and what
// is outside of the tensor arrives as zeros. No thread spends instructions on it, where copying by lines takes as many as the
// products do. Pixels lie without gaps, in the swizzle of their length, and ldmatrix is given turned addresses.
#pragma once
#include "halo_conv.hpp"
#include "hopper.hpp"
#include "wgmma_shape.hpp"

namespace tilewise::cuda {

template <class Config>
struct HaloBoxFeed {
    static constexpr bool kSwizzled = true;
    static constexpr int kBuffers = Config::stages;
    static_assert(kBuffers > 1, "the next patch is on its way while one is read");

    const TensorMap& map;

    TILEWISE_DEVICE HaloBoxFeed(const HaloPlan&, const TensorMap& of) : map(of) {}
    TILEWISE_DEVICE void prepare(const HaloPlan& plan, SharedAddress shared) const {
        if (thread_index() != 0) return;
        TILEWISE_UNROLL
        for (int i = 0; i < kBuffers; ++i) barrier_init(shared + plan.barriers + i * kHaloBarrierBytes, 1);
        barrier_init_fence();
        prefetch_map(map);
    }
    TILEWISE_DEVICE void copy(const KernelArgs&, const HaloLaunch& launch, const KernelActivation&,
                              SharedAddress shared, int index, Index channel, const HaloOrigin& origin) const {
        if (thread_index() != 0) return;
        const HaloPlan& plan = launch.plan;
        const SharedAddress barrier = shared + plan.barriers + index * kHaloBarrierBytes;
        int at[kMaxKernelDims];
        TILEWISE_UNROLL
        for (int d = 0; d < kMaxKernelDims; ++d) {
            at[d] = origin.output[d] * launch.axes[d].in_step + launch.axes[d].first;
        }
        barrier_expect(barrier, u32(plan.patch.bytes()));
        copy_pixel_box(shared + plan.patches + index * plan.patch_bytes, map, barrier, int(channel), at[2], at[1],
                       at[0], origin.image, kKeepNormal);
    }
    TILEWISE_DEVICE void wait(const HaloPlan& plan, SharedAddress shared, int step) const {
        wait_copies<0>();  // of weights
        const u32 turn = u32(step) / kBuffers;
        barrier_wait(shared + plan.barriers + (u32(step) - turn * kBuffers) * kHaloBarrierBytes, turn & 1);
    }
};

}  // namespace tilewise::cuda

#define TILEWISE_CUDA_HALO_BOX_CONV(Config)                                                                     \
    extern "C" __global__ void __launch_bounds__(Config::threads, Config::blocks_per_unit) tilewise_kernel(     \
        const __grid_constant__ tilewise::KernelArgs args, const __grid_constant__ tilewise::cuda::TensorMap a, \
        const __grid_constant__ tilewise::cuda::TensorMap, const __grid_constant__ tilewise::cuda::TensorMap) { \
        tilewise::cuda::HaloConv<Config, tilewise::cuda::HaloBoxFeed<Config>>::run(args, a);                    \
    }
