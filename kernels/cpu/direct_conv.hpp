// SPDX-License-Identifier: MIT
// The direct convolution kernel of a config: what a generated stub includes. Serves depthwise layers
// (specialization=depthwise) and grouped ones with few channels (num_groups_to_merge): vectors run along the channels of
// all groups. Forward and backward data: direct_forward.hpp; backward weight: direct_weight.hpp.
#pragma once
#pragma GCC visibility push(hidden)  // kernels for other machines have functions of the same names
#include "direct_forward.hpp"
#include "direct_weight.hpp"

namespace tilewise::cpu {

template <class Config>
struct DirectConv {
    using A = typename Config::A;
    static_assert(kIsInteger<A> == kIsInteger<typename Config::B>, "integers multiply integers, floats floats");
    static_assert(!kIsInteger<A> || Config::direction == Direction::forward, "integers have no gradients");
    static constexpr bool kWeight = Config::direction == Direction::backward_weight;
    using Kernel = typename ConditionalType<kWeight, DirectWeight<Config>, DirectForward<Config, SingleUnits<A>>>::type;

    TILEWISE_OUTER static void run(const KernelArgs* args, const KernelPart* part, void* scratch) {
        Kernel::run(*args, *part, scratch);
    }
    TILEWISE_OUTER static Index scratch_bytes(const KernelArgs* args) { return Kernel::scratch_bytes(*args); }

    static constexpr CpuKernel table() {
        CpuKernel kernel = {kKernelAbi, scratch_bytes, run, nullptr, nullptr, nullptr, nullptr, nullptr};
        if constexpr (kWeight) kernel.reduce = DirectWeight<Config>::reduce;
        return kernel;
    }
};

}  // namespace tilewise::cpu
#pragma GCC visibility pop

#define TILEWISE_CPU_DIRECT_CONV(Config)                                                                \
    extern "C" __attribute__((visibility("default"))) const tilewise::CpuKernel TILEWISE_KERNEL_SYMBOL; \
    const tilewise::CpuKernel TILEWISE_KERNEL_SYMBOL = tilewise::cpu::DirectConv<Config>::table();
