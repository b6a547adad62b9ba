// SPDX-License-Identifier: MIT
// The end of a depthwise kernel's sums while they are still in registers: a thread has those of V neighbouring channels of a pixel, and
// makes them values of C (epilogue.hpp). Known epilogues are unrolled there. All others, and C or D tensors whose runs are not
// aligned, take a call for each run: the code is too long to repeat, and registers cannot be indexed.
#pragma once
#include "../gpu/depthwise_shape.hpp"
#include "../gpu/epilogue.hpp"

namespace tilewise::cuda {

template <int V>
struct ChannelValues {
    float x[V];
};

template <class Chain, class Out, int V>
TILEWISE_CALLED ChannelValues<V> call_finish_channels(const KernelArgs& args, ChannelValues<V> sums, u32 at,
                                                      int channel, int count) {
    ChannelValues<V> values;
    finish_run<Chain, Out, Along::channels>(args, sums.x, {Index(at), Index(channel), 0, 0, count}, values.x);
    return values;
}

template <class Chain, class Out, int V>
struct ChannelRuns {
    static_assert(Out::bytes == 2 && V > 1);
    using Values = ChannelValues<V>;
    static constexpr bool kHoldsBias = Chain::kFixed && Chain::kHasBias;
    struct NoElements {};
    using Bias = typename ChooseType<kHoldsBias, Packet<V * Out::bytes>, NoElements>::type;

    // The bias of a run, read once for all pixels and held as elements, which take half the registers.
    static TILEWISE_DEVICE Bias read_bias(const KernelArgs& args, int channel) {
        if constexpr (kHoldsBias) {
            Values bias;
            read_run<Out>(args.bias, channel, channel < int(args.conv.groups) ? V : 0, bias.x);
            return pack_values<Out>(bias.x);
        } else {
            return {};
        }
    }

    // Whether runs are finished without a call. Pixels and C are aligned as the kernel writes them.
    static TILEWISE_DEVICE bool in_registers(const KernelArgs& args) {
        if constexpr (!Chain::kFixed) {
            return is_plain(args);
        } else if constexpr (Chain::kTensors > 0) {
            u64 bits = 0;
            TILEWISE_UNROLL
            for (int i = 0; i < Chain::kTensors; ++i) bits |= reinterpret_cast<u64>(args.d[i]);
            return bits % (V * Out::bytes) == 0;
        } else {
            return true;
        }
    }
    // `at`: where the run begins in C; nothing is read there unless it is inside.
    template <bool called>
    static TILEWISE_DEVICE Values finish(const KernelArgs& args, const Values& sums, u32 at, int channel, bool inside,
                                         const Bias& bias) {
        if constexpr (called) return call_finish_channels<Chain, Out>(args, sums, at, channel, inside ? V : 0);
        const RunPlace place{Index(at), Index(channel), 0, 0, inside ? V : 0};
        Values values;
        if constexpr (Chain::kFixed && !Chain::kPlain) {
            HeldTerms<Chain, Out, V> terms;
            if constexpr (kHoldsBias) terms.bias = bias;
            hold_tensors(args, place, terms);
            finish_in_registers<Chain, Out, Along::channels>(args, sums.x, place, values.x, terms);
        } else {
            finish_in_registers<Chain, Out, Along::channels>(args, sums.x, place, values.x);
        }
        return values;
    }
};

}  // namespace tilewise::cuda
