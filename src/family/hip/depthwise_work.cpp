// SPDX-License-Identifier: MIT
#include "family/hip/depthwise_work.hpp"

#include <algorithm>

#include "config/family_id.hpp"
#include "family/gpu/depthwise_grid.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

// The operations of one output: every tap is a multiply-add; a kernel for any filter also looks up each tap, for all channels of an access.
double instructions_of(const Problem& p, const KernelConfig& c) {
    constexpr double kLookUp = 8, kOther = 10;
    const auto taps = static_cast<double>(product(p.conv.filter));
    const bool any = family_of(c) == FamilyId::depthwise_any;
    const double each = any ? 2 + kLookUp / c.vector_a : 1.5;
    return taps * each + kOther / c.vector_a;
}

}  // namespace

template <class N>
N hip_depthwise_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan*) {
    constexpr double kLanesPerCycle = 64, kIssuedShare = 0.5;  // four SIMDs of sixteen lanes
    const ArchSpec& arch = problem.arch;
    const auto& price = arch.prices.mfma_gemm;
    const Problem& p = problem.view.problem;
    const bool backward = c.op == Op::conv_bwd_data;
    const auto outputs = static_cast<double>(p.conv.n * product(backward ? p.conv.in : output_size(p.conv)) *
                                             (backward ? p.conv.c : p.conv.k));
    const auto blocks = static_cast<double>(depthwise_blocks(p, c, arch));
    const double busy = std::min(blocks, static_cast<double>(arch.units));
    const N cycles = counted<N>("instructions", outputs * instructions_of(p, c)) /
                     (kLanesPerCycle * kIssuedShare * std::max(1.0, busy));
    const N memory = bytes_us<N>("memory", problem.bytes, rate<N>(arch.memory_gbps) * N(price.memory_reached_share));
    const N us = longest({named("cycles", cycles / N(price.cycles_per_us)), memory}) + rate<N>(arch.launch_us);
    if (c.split_k <= 1) return us;
    const auto sums = static_cast<double>(4 * product(p.conv.filter) * p.conv.k * c.split_k);
    return us + N(price.second_kernel_us) + bytes_us<N>("sums", 2 * sums, rate<N>(arch.cache_gbps));
}
template double hip_depthwise_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term hip_depthwise_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted hip_depthwise_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

}  // namespace tilewise
