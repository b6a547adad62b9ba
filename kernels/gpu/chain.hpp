// SPDX-License-Identifier: MIT
// An epilogue as a type: a source names the chain that its kernel is compiled for, in Config::Chain.
#pragma once
#include "../common/args.hpp"

namespace tilewise::gpu {

constexpr bool reads_d(KernelEpilogueOp op) { return op == KernelEpilogueOp::add || op == KernelEpilogueOp::mul; }

// The operations of a problem. beta says whether C may be read: args.beta may still be 0.
template <bool beta, KernelScale scale, KernelEpilogueOp... ops>
struct Chain {
    static constexpr bool kFixed = true, kBeta = beta;
    static constexpr KernelScale kScale = scale;
    static constexpr int kCount = sizeof...(ops);
    static constexpr KernelEpilogueOp kOps[kCount + 1] = {ops..., KernelEpilogueOp::none};
    static constexpr bool kPlain = !beta && scale == KernelScale::none && kCount == 0;
    static constexpr bool kHasBias = ((ops == KernelEpilogueOp::bias) || ...);
    static constexpr int kTensors = (0 + ... + (reads_d(ops) ? 1 : 0));  // D
    static constexpr bool kReadsTensors = beta || kTensors > 0;  // C or D: as many elements as there are results
};
using PlainChain = Chain<false, KernelScale::none>;

// Whatever the arguments say: one kernel for all problems, whose operations are looked up for every few elements.
struct RunTimeChain {
    static constexpr bool kFixed = false, kPlain = false, kHasBias = true, kReadsTensors = true;
};

// The chain of a config, the last one where it names none.
template <class Config>
struct ChainOfConfig {
    using type = RunTimeChain;
};
template <class Config>
requires requires { typename Config::Chain; }
struct ChainOfConfig<Config> {
    using type = typename Config::Chain;
};
template <class Config>
using ChainOf = typename ChainOfConfig<Config>::type;

}  // namespace tilewise::gpu
