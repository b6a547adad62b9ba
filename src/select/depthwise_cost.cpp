// SPDX-License-Identifier: MIT
#include "select/depthwise_cost.hpp"

#include <algorithm>
#include <cmath>

#include "family/cuda/depthwise_spec.hpp"
#include "problem/facts.hpp"
#include "select/depthwise_matrix_cost.hpp"
#include "select/depthwise_slab_cost.hpp"
#include "select/depthwise_strips_cost.hpp"
#include "select/gpu_clock.hpp"
#include "select/machine_rates.hpp"

namespace tilewise {
namespace {

// Lanes' instructions, of every product on its own. Backward data looks at every tap, also at those that the stride passes over;
// backward weight has a pixel for each warp at a time, and waits for it. Fitted to times on an H200.
double any_instructions(const Problem& p, const KernelConfig& c) {
    constexpr double kPerOutput = 350, kPerTap = 23, kPerElement = 14, kBackward = 1.25;
    const auto taps = static_cast<double>(product(p.conv.filter));
    const bool backward = c.op == Op::conv_bwd_data;
    const auto outputs = static_cast<double>(p.conv.n * product(backward ? p.conv.in : output_size(p.conv)) *
                                             (backward ? p.conv.c : p.conv.k));
    return outputs / c.vector_a * (kPerOutput + taps * (kPerTap + kPerElement * c.vector_a)) *
           (backward ? kBackward : 1);
}

double any_us(const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    constexpr double kLanesPerUnit = 128, kIssued = 0.7, kMemoryReached = 0.85, kStartUs = 1.5;
    double cycles = 0;
    if (c.op == Op::conv_bwd_weight) {
        constexpr double kPixelCycles = 1500, kBlocksOfUnit = 8;
        const auto pixels = static_cast<double>(p.conv.n * product(output_size(p.conv)));
        const double blocks =
            blocks_of(p.conv.k, kAnyWeightChannels) * blocks_of(product(p.conv.filter), kAnyWeightTaps) * c.split_k;
        cycles = std::ceil(blocks / (arch.units * kBlocksOfUnit)) * pixels / (c.split_k * c.wave.m) * kPixelCycles;
    } else {
        cycles = any_instructions(p, c) / (kLanesPerUnit * kIssued * arch.units);
    }
    const double memory_us = bytes_moved(p) / (arch.memory_gbps * kMemoryReached * 1e3);
    double us = std::max(cycles / kCyclesPerUs, memory_us) + kStartUs + arch.launch_us;
    if (c.split_k > 1) {
        constexpr double kSecondKernelUs = 2.5;
        const auto sums = static_cast<double>(4 * product(p.conv.filter) * p.conv.k * c.split_k);
        us += kSecondKernelUs + 2 * sums / (arch.cache_gbps * 1e3);
    }
    return us;
}

}  // namespace

double predicted_depthwise_us(const ProblemView& view, const KernelConfig& c, const ArchSpec& arch) {
    const Problem& p = view.problem;
    const DepthwiseSpec spec = depthwise_spec(c);
    switch (family_of(c)) {
        case FamilyId::depthwise_strips: return predicted_strips_us(p, c, spec, arch);
        case FamilyId::depthwise_channel_slice: return predicted_slab_us(p, c, arch);
        case FamilyId::depthwise_toeplitz:
        case FamilyId::depthwise_block_diagonal: return predicted_depthwise_matrix_us(p, c, spec, arch);
        default: break;
    }
    return any_us(p, c, arch);
}

}  // namespace tilewise
