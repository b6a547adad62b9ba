// SPDX-License-Identifier: MIT
#include "select/depthwise_strips_cost.hpp"

#include <algorithm>
#include <cmath>

#include "problem/facts.hpp"
#include "select/gpu_clock.hpp"
#include "select/machine_rates.hpp"

namespace tilewise {
namespace {

// All constants were fitted to 241 times of 12 layers on an H200, of each half to see that they hold for the other.

// Of a direction's outputs, its inputs, the filter or the stride; 1 where there is no such dimension.
struct Plane {
    double depth = 1, height = 1, width = 1;
};
Plane plane_of(const Extents& e) {
    Plane p;
    p.width = static_cast<double>(e[e.rank - 1]);
    if (e.rank > 1) p.height = static_cast<double>(e[e.rank - 2]);
    if (e.rank > 2) p.depth = static_cast<double>(e[0]);
    return p;
}

// Lines of inputs that a thread walks over, and those it finds to be outside; instructions of one line.
struct StripWork {
    double lines, empty_lines, line_instructions;
    double strips;  // of all channels of the tensor
};

StripWork strip_work(const Problem& p, const KernelConfig& c, const DepthwiseSpec& spec) {
    const bool backward = c.op == Op::conv_bwd_data, weight = c.op == Op::conv_bwd_weight;
    const Extents x = p.conv.in, y = output_size(p.conv);
    const Plane out = plane_of(backward ? x : y), in = plane_of(backward ? y : x), filter = plane_of(p.conv.filter);
    const Plane stride = plane_of(p.conv.stride);
    const double vector = c.vector_a, width = spec.strip_width, height = spec.strip_height;
    const double rows = backward ? stride.height : 1 / stride.height;  // of outputs, for a line of inputs
    const double down = std::ceil(out.height / height);                // strips below each other
    const double all_lines = height / rows + filter.height - 1;
    const double inputs = backward ? (width + filter.width) / stride.width : width * stride.width + filter.width - 1;
    // Every element is converted once and meets its taps; a result is scaled, converted and stored.
    const double taps = filter.width * filter.height / (backward ? stride.width : stride.height);
    StripWork work{};
    work.lines = std::min(out.height / down / rows + filter.height - 1, in.height);
    work.empty_lines = std::max(0.0, all_lines - work.lines);
    work.line_instructions = vector * (filter.depth * (width * taps + inputs) + rows * width * (weight ? 1.0 : 2.0));
    work.strips = static_cast<double>(p.conv.n) * out.depth * down * std::ceil(out.width / width);
    return work;
}

}  // namespace

double predicted_strips_us(const Problem& p, const KernelConfig& c, const DepthwiseSpec& spec, const ArchSpec& arch) {
    constexpr double kLanesPerUnit = 128, kIssued = 0.48, kEmptyLine = 85;
    constexpr double kMemoryReached = 0.75, kStartUs = 2.1, kSharpness = 6;
    const bool weight = c.op == Op::conv_bwd_weight;
    const StripWork work = strip_work(p, c, spec);
    const double channel_tiles = blocks_of(p.conv.g, c.tile.n);
    const double blocks = channel_tiles * (weight ? c.split_k : std::ceil(work.strips / spec.strips));
    const double walks = weight ? std::ceil(std::ceil(work.strips / c.split_k) / spec.strips) : 1;  // of a thread
    // Places of blocks that have ended are taken at once, except in the last round.
    const double filled = blocks / (static_cast<double>(arch.units) * spec.resident_blocks);
    const double rounds = filled <= 1 ? 1 : (filled + std::ceil(filled)) / 2;
    const double sharing = std::min<double>(spec.resident_blocks, std::ceil(blocks / arch.units));
    const double threads = c.wave.m * 32.0;
    const double instructions = work.lines * work.line_instructions + work.empty_lines * kEmptyLine;
    const double busy = instructions * sharing * threads / (kLanesPerUnit * kIssued);
    // One line is under way while another is computed: none takes less than a load, and what a warp by itself takes to issue.
    constexpr double kLoadCycles = 880, kOwnCycles = 2.5;
    const double waiting = work.lines * (kLoadCycles + kOwnCycles * work.line_instructions);
    const double cycles = rounds * walks * side_by_side({busy, waiting}, kSharpness);
    const double memory_us = bytes_moved(p) / (arch.memory_gbps * kMemoryReached * 1e3);
    double us = side_by_side({cycles / kCyclesPerUs, memory_us}, kSharpness) + arch.launch_us + kStartUs;
    if (c.split_k > 1) {
        // Sums are written and read by few threads, one after the other.
        constexpr double kSecondKernelUs = 0.65, kSumsReached = 0.046;
        const double sums = 4.0 * static_cast<double>(product(p.conv.filter) * p.conv.k) * c.split_k;
        us += kSecondKernelUs + 2 * sums / (arch.cache_gbps * kSumsReached * 1e3);
    }
    return us;
}

}  // namespace tilewise
