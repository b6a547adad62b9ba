// SPDX-License-Identifier: MIT
#include "select/depthwise_cost.hpp"

#include <algorithm>
#include <cmath>

#include "codegen/depthwise_spec.hpp"
#include "problem/facts.hpp"
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

// A block walks down its strips line by line; every warp turns lines around and multiplies, in turn.
Work band_work(const Problem& p, const KernelConfig& c, const DepthwiseSpec& spec) {
    constexpr double kPerLine = 110, kPerProduct = 3, kPerWalk = 500;
    const bool weight = c.op == Op::conv_bwd_weight;
    const Sizes out = sizes_of(c.op == Op::conv_bwd_data ? p.conv.in : output_size(p.conv)),
                filter = sizes_of(p.conv.filter);
    const double strips = blocks_of(out.width, spec.strip_width), tiles = blocks_of(strips, spec.strips);
    const double images = std::floor(spec.strips / blocks_of(strips, tiles));
    const double walks =
        blocks_of(out.height, spec.strip_height) * tiles * blocks_of(static_cast<double>(p.conv.n), images);
    const double height = std::min<double>(spec.strip_height, out.height);
    const double line = kPerLine * (weight ? 1.4 : 1) + 2 * filter.height * kPerProduct;
    Work work;
    work.threads = c.wave.m * c.wave.n * 32.0;
    work.blocks = blocks_of(static_cast<double>(p.conv.g), c.tile.n) * (weight ? c.split_k : walks);
    work.instructions = (weight ? blocks_of(walks, c.split_k) : 1) * (kPerWalk + (height + filter.height - 1) * line);
    return work;
}

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

Work work_of(const Problem& p, const KernelConfig& c, const DepthwiseSpec& spec) {
    switch (spec.kind) {
        case DepthwiseKind::any: return any_work(p, c);
        case DepthwiseKind::strips:  // predicted_strips_us
        case DepthwiseKind::band: return band_work(p, c, spec);
    }
    return {};
}

}  // namespace

double predicted_depthwise_us(const ProblemView& view, const KernelConfig& c, const ArchSpec& arch) {
    const Problem& p = view.problem;
    const DepthwiseSpec spec = depthwise_spec(c);
    if (spec.kind == DepthwiseKind::strips) return predicted_strips_us(p, c, spec, arch);
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
    if (c.split_k > 1) {
        const double sums = 4.0 * static_cast<double>(product(p.conv.filter)) * static_cast<double>(p.conv.k);
        total += kSecondKernelUs + sums * c.split_k * 2 / (arch.cache_gbps * 1e3);
    }
    return total;
}

}  // namespace tilewise
