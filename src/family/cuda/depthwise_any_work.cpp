// SPDX-License-Identifier: MIT
// Depthwise convolutions of any shape, every product on its own.
#include <algorithm>
#include <cmath>

#include "config/depthwise_spec.hpp"
#include "family/cuda/works.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

// Lanes' instructions. Backward data looks at every tap, also at those that the stride passes over.
template <class N>
N any_instructions(const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.depthwise_any;
    const auto taps = static_cast<double>(product(p.conv.filter));
    const bool backward = c.op == Op::conv_bwd_data;
    const auto outputs = static_cast<double>(p.conv.n * product(backward ? p.conv.in : output_size(p.conv)) *
                                             (backward ? p.conv.c : p.conv.k));
    const N each = N(price.output_instructions) +
                   N(taps) * (N(price.tap_instructions) + N(price.element_instructions) * c.vector_a);
    const N all = counted<N>("outputs", outputs / c.vector_a) * each;
    return backward ? all * N(price.backward_share) : all;
}

// Backward weight has a pixel for each warp at a time, and waits for it.
template <class N>
N any_cycles(const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.depthwise_any;
    if (c.op == Op::conv_bwd_weight) {
        constexpr double kBlocksOfUnit = 8;
        const auto pixels = static_cast<double>(p.conv.n * product(output_size(p.conv)));
        const double blocks =
            blocks_of(p.conv.k, arch.wave_size) * blocks_of(product(p.conv.filter), kAnyWeightTaps) * c.split_k;
        return term<N>("pixels", std::ceil(blocks / (arch.units * kBlocksOfUnit)) * pixels / (c.split_k * c.wave.m),
                       price.pixel_cycles);
    }
    constexpr double kLanesPerUnit = 128;
    return any_instructions<N>(p, c, arch) / (N(price.issued_share) * (kLanesPerUnit * arch.units));
}

}  // namespace

template <class N>
N depthwise_any_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan*) {
    const ArchSpec& arch = problem.arch;
    const auto& price = arch.prices.depthwise_any;
    const Problem& p = problem.view.problem;
    const N memory = bytes_us<N>("memory", problem.bytes, rate<N>(arch.memory_gbps) * N(price.memory_reached_share));
    const N us = longest({cycles_us<N>("cycles", any_cycles<N>(p, c, arch), arch), memory}) + N(price.start_us) +
                 rate<N>(arch.launch_us);
    if (c.split_k <= 1) return us;
    const auto sums = static_cast<double>(4 * product(p.conv.filter) * p.conv.k * c.split_k);
    return us + N(price.second_kernel_us) + bytes_us<N>("sums", 2 * sums, rate<N>(arch.cache_gbps));
}
template double depthwise_any_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term depthwise_any_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted depthwise_any_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

}  // namespace tilewise
