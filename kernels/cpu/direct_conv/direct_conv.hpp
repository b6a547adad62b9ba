// SPDX-License-Identifier: MIT
// The direct convolution kernel of a config: what a generated stub includes. Serves depthwise layers
// (specialization=depthwise) and grouped ones with few channels (num_groups_to_merge): vectors run along the channels of
// all groups. Forward and backward data: direct_forward.hpp; backward weight: direct_weight.hpp.
#pragma once
#pragma GCC visibility push(hidden)  // kernels for other machines have functions of the same names
#include "direct_forward.hpp"
#include "direct_weight.hpp"

namespace tilewise::cpu::direct_conv {

template <class Config>
struct DirectConv {
    using A = typename Config::A;
    static_assert(kIsInteger<A> == kIsInteger<typename Config::B>, "integers multiply integers, floats floats");
    static_assert(!kIsInteger<A> || Config::direction == Direction::forward, "integers have no gradients");
    static constexpr bool kWeight = Config::direction == Direction::backward_weight;
    // bf16, two products at once: of two channels of a group, or of two rows of taps where a group has but one.
    static constexpr bool kHasPairs =
        kHasBf16Dot && kSame<A, Bf16> && kSame<typename Config::B, Bf16> && Config::warp_k == 2 && !kWeight;
    using Single = typename ConditionalType<kWeight, DirectWeight<Config>, DirectForward<Config, SingleUnits<A>>>::type;
    using PairKind = typename ConditionalType<Config::depthwise, RowPairUnits, PairUnits>::type;
    using Pairs = typename ConditionalType<kHasPairs, DirectForward<Config, PairKind>, Single>::type;
    static TILEWISE_INLINE bool is_paired(const KernelConv& conv) {
        if (Config::depthwise) return kHasPairs && conv.c == 1 && conv.k == 1;
        return kHasPairs && (Config::direction == Direction::forward ? conv.c : conv.k) % PairUnits::depth == 0;
    }

    TILEWISE_OUTER static void run(const KernelArgs* args, const KernelPart* part, void* scratch) {
        is_paired(args->conv) ? Pairs::run(*args, *part, scratch) : Single::run(*args, *part, scratch);
    }
    TILEWISE_OUTER static Index scratch_bytes(const KernelArgs* args) {
        return is_paired(args->conv) ? Pairs::scratch_bytes(*args) : Single::scratch_bytes(*args);
    }

    static constexpr CpuKernel table() {
        CpuKernel kernel = {kKernelAbi, scratch_bytes, run, nullptr, nullptr, nullptr, nullptr, nullptr};
        if constexpr (kWeight) kernel.reduce = DirectWeight<Config>::reduce;
        return kernel;
    }
};

}  // namespace tilewise::cpu::direct_conv
#pragma GCC visibility pop

#define TILEWISE_CPU_DIRECT_CONV(Config)                                                                \
    extern "C" __attribute__((visibility("default"))) const tilewise::CpuKernel TILEWISE_KERNEL_SYMBOL; \
    const tilewise::CpuKernel TILEWISE_KERNEL_SYMBOL = tilewise::cpu::direct_conv::DirectConv<Config>::table();
