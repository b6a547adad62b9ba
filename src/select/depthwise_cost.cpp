// SPDX-License-Identifier: MIT
#include "select/depthwise_cost.hpp"

#include <algorithm>
#include <cmath>

#include "codegen/depthwise_spec.hpp"
#include "problem/facts.hpp"
#include "select/depthwise_matrix_cost.hpp"
#include "select/depthwise_strips_cost.hpp"
#include "select/gpu_clock.hpp"

namespace tilewise {
namespace {

// The constants are estimates from the times of earlier kernels on an H200.
constexpr double kLanesPerUnit = 128;
constexpr double kDepthwiseMemoryReached = 0.85;
constexpr double kStartUs = 1.5;  // a block's weights and first lines
constexpr double kSecondKernelUs = 2.5;

double blocks_of(double size, double unit) { return std::ceil(size / unit); }

struct Work {
    double blocks = 0;        // of the grid
    double instructions = 0;  // of a thread, from begin to end
    double threads = 0;       // of a block
};

// Every product on its own. Backward data looks at every tap, also at those that the stride passes over; backward weight has a
// pixel for each warp at a time, and waits for it.
Work any_work(const Problem& p, const KernelConfig& c) {
    constexpr double kThreads = 1024, kPerOutput = 350, kPerTap = 23, kPerElement = 14, kBackward = 1.25;
    const double taps = static_cast<double>(product(p.conv.filter)), vector = c.vector_a;
    Work work;
    work.threads = kThreads;
    if (c.op == Op::conv_bwd_weight) {
        constexpr double kPixelInstructions = 150;
        const double pixels = static_cast<double>(p.conv.n * product(output_size(p.conv)));
        work.blocks =
            blocks_of(static_cast<double>(p.conv.k), kAnyWeightChannels) * blocks_of(taps, kAnyWeightTaps) * c.split_k;
        work.instructions = pixels / (static_cast<double>(c.split_k) * c.wave.m) * kPixelInstructions;
        return work;
    }
    const bool backward = c.op == Op::conv_bwd_data;
    const std::int64_t pixels = product(backward ? p.conv.in : output_size(p.conv));
    work.blocks = static_cast<double>(p.conv.n * pixels * (backward ? p.conv.c : p.conv.k)) / vector / kThreads;
    work.instructions = (kPerOutput + taps * (kPerTap + kPerElement * vector)) * (backward ? kBackward : 1);
    return work;
}

}  // namespace

double predicted_depthwise_us(const ProblemView& view, const KernelConfig& c, const ArchSpec& arch) {
    const Problem& p = view.problem;
    const DepthwiseSpec spec = depthwise_spec(c);
    switch (spec.kind) {
        case DepthwiseKind::strips: return predicted_strips_us(p, c, spec, arch);
        case DepthwiseKind::band:
        case DepthwiseKind::diagonal: return predicted_depthwise_matrix_us(p, c, spec, arch);
        case DepthwiseKind::any: break;
    }
    const Work work = any_work(p, c);
    // Blocks that are there at the same time share a unit's issue slots; a unit with one block cannot use them all.
    constexpr double kIssued = 0.7, kThreadsToFill = 384;
    const double resident = arch.units * spec.resident_blocks, rounds = blocks_of(work.blocks, resident);
    const double together = std::min<double>(spec.resident_blocks, std::max(1.0, work.blocks / arch.units));
    const double filled = std::min(1.0, together * work.threads / kThreadsToFill);
    const double round_us =
        work.instructions * together * work.threads / (kLanesPerUnit * kCyclesPerUs * kIssued * filled);
    const double issue_us = rounds * round_us;
    const double memory_us = bytes_moved(p) / (arch.memory_gbps * kDepthwiseMemoryReached * 1e3);
    double total = std::max(issue_us, memory_us) + 0.3 * std::min(issue_us, memory_us) + kStartUs + arch.launch_us;
    if (c.split_k > 1 && !c.cluster_k) {
        const double sums = 4.0 * static_cast<double>(product(p.conv.filter)) * static_cast<double>(p.conv.k);
        total += kSecondKernelUs + sums * c.split_k * 2 / (arch.cache_gbps * 1e3);
    }
    return total;
}

}  // namespace tilewise
