// SPDX-License-Identifier: MIT
#include "select/depthwise_cost.hpp"

#include <algorithm>
#include <cmath>

#include "codegen/depthwise_spec.hpp"
#include "problem/facts.hpp"
#include "select/depthwise_matrix_cost.hpp"
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

// The sizes of the outputs of the direction, and of a filter, outermost last.
struct Sizes {
    double pixels = 1, height = 1, width = 1, depth = 1;
};
Sizes sizes_of(const Extents& e) {
    Sizes s;
    s.width = static_cast<double>(e[e.rank - 1]);
    s.height = e.rank > 1 ? static_cast<double>(e[e.rank - 2]) : 1;
    s.depth = e.rank > 2 ? static_cast<double>(e[0]) : 1;
    s.pixels = s.width * s.height * s.depth;
    return s;
}

// A thread walks down strips; a line of inputs costs its conversions and the multiply-adds of all rows that it meets.
Work strips_work(const Problem& p, const KernelConfig& c, const DepthwiseSpec& spec) {
    constexpr double kPerInput = 6, kPerOutput = 6, kPerLine = 20, kPerStrip = 250;
    const bool backward = c.op == Op::conv_bwd_data, weight = c.op == Op::conv_bwd_weight;
    const Sizes out = sizes_of(backward ? p.conv.in : output_size(p.conv)), filter = sizes_of(p.conv.filter);
    const Sizes stride = sizes_of(p.conv.stride);
    const double vector = c.vector_a, width = spec.strip_width, height = spec.strip_height;
    const double per_line = backward ? stride.height : 1 / stride.height;  // rows of outputs for a line of inputs
    const double lines = height / per_line + filter.height - 1;
    const double inputs =
        backward ? width / stride.width + filter.width / stride.width : width * stride.width + filter.width - 1;
    const double taps = filter.width * filter.height / (backward ? stride.width * stride.height : stride.height);
    const double line =
        filter.depth * (vector * width * taps * (backward ? per_line : 1) + inputs * (vector + kPerInput)) +
        per_line * width * (weight ? vector + kPerInput : 2 * vector + kPerOutput) + kPerLine;
    const double strips =
        static_cast<double>(p.conv.n) * out.depth * blocks_of(out.height, height) * blocks_of(out.width, width);
    Work work;
    work.threads = c.wave.m * 32.0;
    const double channel_tiles = blocks_of(static_cast<double>(p.conv.g), c.tile.n);
    work.blocks = channel_tiles * (weight ? c.split_k : blocks_of(strips, spec.strips));
    work.instructions =
        (weight ? blocks_of(blocks_of(strips, c.split_k), spec.strips) : 1) * (kPerStrip + lines * line);
    return work;
}

// Every product on its own: three or four instructions, and a load for each.
Work any_work(const Problem& p, const KernelConfig& c) {
    constexpr double kPerProduct = 10, kThreads = 1024;
    Work work;
    work.threads = kThreads;
    work.blocks = flops(p) / 2 / kThreads;
    work.instructions = kPerProduct * (1 + 3.0 / c.vector_a);
    return work;
}

Work work_of(const Problem& p, const KernelConfig& c, const DepthwiseSpec& spec) {
    switch (spec.kind) {
        case DepthwiseKind::any: return any_work(p, c);
        case DepthwiseKind::strips: return strips_work(p, c, spec);
        case DepthwiseKind::band:
        case DepthwiseKind::diagonal: break;  // predicted_depthwise_matrix_us
    }
    return {};
}

}  // namespace

double predicted_depthwise_us(const ProblemView& view, const KernelConfig& c, const ArchSpec& arch) {
    const Problem& p = view.problem;
    const DepthwiseSpec spec = depthwise_spec(c);
    if (spec.kind == DepthwiseKind::band || spec.kind == DepthwiseKind::diagonal) {
        return predicted_depthwise_matrix_us(p, c, spec, arch);
    }
    const Work work = work_of(p, c, spec);
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
