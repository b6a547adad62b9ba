// SPDX-License-Identifier: MIT
// patch_conv.hpp with patches that the copy engine stages: one thread asks for a box of pixels of all the tile's channels, and what
// is outside of the tensor arrives as zeros. No thread spends instructions on it, where copying by lines takes as many as the
// products do. Pixels lie without gaps, in the swizzle of their length, and ldmatrix is given turned addresses.
#pragma once
#include "../hopper.hpp"
#include "../patch_conv/patch_conv.hpp"
#include "../wgmma_gemm/wgmma_shape.hpp"

namespace tilewise::cuda::patch_box_conv {

using namespace patch_conv;

template <class Config>
struct BoxFeed {
    static constexpr bool kBoxes = true;
    static constexpr int kStepM = 16, kStepN = 8;
    using Chain = ChainOf<Config>;
    using Out = typename Config::Out;
    static constexpr int kBuffers = Config::stages;
    static_assert(kBuffers > 1 && kBuffers <= kPatchMostBuffers, "the next patch is on its way while one is read");

    const TensorMap &map, &out_map;

    TILEWISE_DEVICE BoxFeed(const PatchConvLayout&, const TensorMap& of, const TensorMap& out)
        : map(of), out_map(out) {}
    TILEWISE_DEVICE void prepare(const PatchConvLayout& plan, SharedAddress shared) const {
        if (thread_index() != 0) return;
        TILEWISE_UNROLL
        for (int i = 0; i < kBuffers; ++i) barrier_init(shared + plan.barriers + i * kPatchBarrierBytes, 1);
        barrier_init_fence();
        prefetch_map(map);
    }
    TILEWISE_DEVICE void copy(const KernelArgs&, const PatchConvArgs& launch, const KernelActivation&,
                              SharedAddress shared, int index, Index channel, const PatchOrigin& origin) const {
        if (thread_index() != 0) return;
        const PatchConvLayout& plan = launch.plan;
        const SharedAddress barrier = shared + plan.barriers + index * kPatchBarrierBytes;
        int at[kMaxKernelDims];
        TILEWISE_UNROLL
        for (int d = 0; d < kMaxKernelDims; ++d) {
            at[d] = origin.output[d] * launch.axes[d].in_step + launch.axes[d].first;
        }
        const PatchShape& patch = plan.patch;
        const int plane_bytes = patch.plane * patch.pitch;
        const int box_bytes = patch.images * patch.depth * patch.height * patch.phase * patch.pitch;
        SharedAddress to = shared + plan.patches + index * plan.patch_bytes;
        barrier_expect(barrier, u32(patch.steps[2] * box_bytes));
        TILEWISE_ROLLED
        for (int residue = 0; residue < patch.steps[2]; ++residue, to += plane_bytes) {
            copy_pixel_box(to, map, barrier, int(channel), at[2] + residue, at[1], at[0], origin.image, kKeepNormal);
        }
    }
    TILEWISE_DEVICE void wait(const PatchConvLayout& plan, SharedAddress shared, int step) const {
        wait_copies<0>();  // of weights
        const u32 turn = u32(step) / kBuffers;
        barrier_wait(shared + plan.barriers + (u32(step) - turn * kBuffers) * kPatchBarrierBytes, turn & 1);
    }

    // ---- Results, by the copy engine, too: rows of a tile are the pixels of a box ----

    // The warp's sums of a product, from row `first_row` of the tile on.
    template <class Sum, int steps_m, int steps_n>
    TILEWISE_DEVICE void put(const KernelArgs& args, const PatchConvLayout& plan, SharedAddress stage,
                             const Sum (&sums)[steps_m][steps_n][4], int first_row, int product, int group) const {
        RunPlace place{};  // of the product's first column
        place.bias = group * args.bias_batch_stride + product * plan.out_channels;
        place.count = plan.out_channels;
        constexpr bool kScales = Chain::kFixed && !Chain::kPlain;
        !kScales&& args.alpha == 1.0f ? put_all<true>(args, plan, stage, sums, first_row, product, place)
                                      : put_all<false>(args, plan, stage, sums, first_row, product, place);
    }
    // All warps have put theirs.
    TILEWISE_DEVICE void store(SharedAddress stage, int channel, const PatchOrigin& origin) const {
        async_proxy_fence();
        sync_block();
        if (thread_index() != 0) return;
        store_pixel_box(out_map, stage, channel, origin.output[2], origin.output[1], origin.output[0], origin.image);
        store_commit();
    }
    // The stage that is written next has been read; a barrier of the block must follow.
    TILEWISE_DEVICE void free_stage(const PatchConvLayout& plan) const {
        if (thread_index() != 0) return;
        if (plan.out_stages > 1) {
            store_wait_read<1>();
        } else {
            store_wait_read<0>();
        }
    }
    TILEWISE_DEVICE void finish() const {
        if (thread_index() == 0) store_wait_read<0>();
    }

private:
    template <bool unscaled, class Sum>
    static TILEWISE_DEVICE u32 pair_of(const KernelArgs& args, Sum first, Sum second, RunPlace place, int step) {
        using Value = ValueOf<Sum, Out>;
        Value values[2] = {Value(first), Value(second)};
        if constexpr (!unscaled) {
            const int col = step * kStepN + lane_index() % 4 * 2;
            place.bias += col, place.count -= col;
            const Sum pair[2] = {first, second};
            finish_in_registers<Chain, Out, Along::columns>(args, pair, place, values);
        }
        return pack_values<Out>(values).words[0];
    }
    // Two steps of n at a time; what is beyond the product's columns or the tile's rows goes nowhere.
    template <bool unscaled, class Sum, int steps_m, int steps_n>
    TILEWISE_DEVICE void put_all(const KernelArgs& args, const PatchConvLayout& plan, SharedAddress stage,
                                 const Sum (&sums)[steps_m][steps_n][4], int first_row, int product,
                                 const RunPlace& place) const {
        if constexpr (Out::bytes == 2) {
            const int chunks = plan.out_channels * int(Out::bytes) / kChunkBytes, second = lane_index() / kStepM;
            const SharedAddress nowhere =
                shared_start() + plan.out + plan.out_stages * plan.out_bytes + lane_index() * kChunkBytes;
            const int row = first_row + lane_index() % kStepM, steps = steps_n < chunks ? steps_n : chunks;
            const SharedAddress to = stage + row * plan.out_pitch + (product * chunks + second) * kChunkBytes;
            TILEWISE_UNROLL
            for (int i = 0; i < steps_m; ++i) {
                TILEWISE_UNROLL
                for (int j = 0; j < steps_n; j += 2) {
                    const Sum(&one)[4] = sums[i][j];
                    const int k = j + 1 < steps_n ? j + 1 : j;
                    const Sum(&two)[4] = sums[i][k];
                    const u32 four[4] = {pair_of<unscaled>(args, one[0], one[1], place, j),
                                         pair_of<unscaled>(args, one[2], one[3], place, j),
                                         pair_of<unscaled>(args, two[0], two[1], place, k),
                                         pair_of<unscaled>(args, two[2], two[3], place, k)};
                    const SharedAddress at = to + i * kStepM * plan.out_pitch + j * kChunkBytes;
                    const bool is_there = j + second < steps && row + i * kStepM < plan.out_rows;
                    store_matrices(is_there ? at ^ (at >> 3 & u32(plan.out_swizzle)) : nowhere, four);
                }
            }
        }
    }
};

}  // namespace tilewise::cuda::patch_box_conv

#define TILEWISE_CUDA_PATCH_BOX_CONV(Config)                                                                         \
    extern "C" __global__ void __launch_bounds__(Config::threads, Config::blocks_per_unit) tilewise_kernel(          \
        const __grid_constant__ tilewise::KernelArgs args, const __grid_constant__ tilewise::cuda::TensorMap a,      \
        const __grid_constant__ tilewise::cuda::TensorMap, const __grid_constant__ tilewise::cuda::TensorMap c) {    \
        tilewise::cuda::patch_conv::PatchConv<Config, tilewise::cuda::patch_box_conv::BoxFeed<Config>>::run(args, a, \
                                                                                                            c);      \
    }
