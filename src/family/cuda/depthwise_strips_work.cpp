// SPDX-License-Identifier: MIT
// Depthwise convolutions whose threads walk down strips.
#include <algorithm>
#include <cmath>

#include "config/depthwise_spec.hpp"
#include "family/cuda/works.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

// The extents of a direction's outputs, its inputs, the filter or the stride; 1 where there is no such dimension.
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

template <class N>
N depthwise_strips_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan*) {
    const ArchSpec& arch = problem.arch;
    const auto& price = arch.prices.depthwise_strips;
    const Problem& p = problem.view.problem;
    const DepthwiseSpec spec = depthwise_spec(c, arch);
    const bool weight = c.op == Op::conv_bwd_weight;
    const StripWork work = strip_work(p, c, spec);
    const double channel_tiles = blocks_of(p.conv.g, c.tile.n);
    const double blocks = channel_tiles * (weight ? c.split_k : std::ceil(work.strips / spec.strips));
    const double walks = weight ? std::ceil(std::ceil(work.strips / c.split_k) / spec.strips) : 1;  // of a thread
    // Places of blocks that have ended are taken at once, except in the last round.
    const double filled = blocks / (static_cast<double>(arch.units) * spec.resident_blocks);
    const double rounds = filled <= 1 ? 1 : (filled + std::ceil(filled)) / 2;
    const double sharing = std::min<double>(spec.resident_blocks, std::ceil(blocks / arch.units));
    constexpr double kLanesPerUnit = 128;
    const double threads = static_cast<double>(c.wave.m * arch.wave_size) * sharing;
    const N instructions = counted<N>("instructions", work.lines * work.line_instructions) +
                           term<N>("empty lines", work.empty_lines, price.empty_line_instructions);
    const N busy = named("busy", instructions * (threads / kLanesPerUnit) / N(price.issued_share));
    // One line is under way while another is computed: none takes less than a load, and what a warp by itself takes to issue.
    const N waiting = named(
        "waiting", counted<N>("lines", work.lines) *
                       (N(price.load_cycles) + term<N>("own instructions", work.line_instructions, price.own_cycles)));
    const N cycles = counted<N>("walks", rounds * walks) * soft_max(N(price.sharpness), {busy, waiting});
    const N memory = bytes_us<N>("memory", problem.bytes, rate<N>(arch.memory_gbps) * N(price.memory_reached_share));
    const N us = soft_max(N(price.sharpness), {cycles_us<N>("cycles", cycles, arch), memory}) +
                 rate<N>(arch.launch_us) + N(price.start_us);
    if (c.split_k <= 1) return us;
    // Sums are written and read by few threads, one after the other.
    const double sums = 4.0 * static_cast<double>(product(p.conv.filter) * p.conv.k) * c.split_k;
    return us + N(price.second_kernel_us) +
           bytes_us<N>("sums", 2 * sums, rate<N>(arch.cache_gbps) * N(price.sums_reached_share));
}
template double depthwise_strips_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term depthwise_strips_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted depthwise_strips_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

}  // namespace tilewise
