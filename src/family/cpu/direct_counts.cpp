// SPDX-License-Identifier: MIT
// Counts what the direct convolution kernels (kernels/cpu/direct_conv/direct_forward.hpp, direct_weight.hpp) do, as conv_counts.hpp says.
#include <algorithm>
#include <cmath>

#include "family/cpu/conv_counts.hpp"
#include "family/work_problem.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

// Pixels of a block: as many as leave registers for the rest.
double block_pixels(const KernelConfig& c, const ArchSpec& arch, int vectors) {
    const bool wide = arch.load_bytes >= 64, depthwise = c.specialization == Specialization::depthwise;
    if (c.op == Op::conv_bwd_weight) return std::clamp((wide ? 14 : 6) / vectors, 1, c.warp_tile.m);
    const int sums = !wide ? 8 : depthwise ? 28 : 20, most = std::max(1, sums / vectors);
    if (c.warp_tile.m <= most) return c.warp_tile.m;
    constexpr int kUsualWidth = 7;  // most layers' lines are multiples of it
    return most > kUsualWidth ? most - most % kUsualWidth : most;
}

// Taps of a line whose reads are shared: all of them where they are compiled in, else up to three side by side.
struct SharedTaps {
    double together, rounds;
    bool any, compiled;
};
SharedTaps shared_taps(const ConvShape& s, const KernelConfig& c, std::int64_t line_taps) {
    constexpr double kTogether = 3;
    const int last = s.in.rank - 1;
    const bool backward = c.op == Op::conv_bwd_data;
    const bool compiled = c.ct_filter.rank > 0 && c.ct_stride.rank > 0 && (!backward || s.stride[last] == 1);
    const bool side_by_side = s.dilation[last] == 1 && (backward || s.stride[last] == 1);
    const auto taps = static_cast<double>(line_taps);
    if (line_taps <= 1 || !(compiled || side_by_side)) return {1, taps, false, compiled};
    const double together = compiled ? taps : std::min(kTogether, taps);
    return {together, std::ceil(taps / together), true, compiled};
}

// Vectors of inputs that the lanes of one vector of outputs take theirs from: the groups they belong to lie further apart the
// more channels those have (kernels/cpu/direct_conv/spread.hpp).
double source_vectors(std::int64_t outputs, std::int64_t inputs, std::int64_t lanes) {
    std::int64_t groups = 1;
    if (outputs % lanes != 0) groups = lanes % outputs == 0 ? lanes / outputs : (lanes + outputs - 2) / outputs + 1;
    return blocks_of((groups - 1) * inputs + 1, lanes);
}

}  // namespace

DirectWork ConvCounts::direct_work(const KernelConfig& c) const {
    DirectWork w;
    const ConvShape& s = problem_.conv;
    const bool is_weight = problem_.op == Op::conv_bwd_weight;
    const bool depthwise = c.specialization == Specialization::depthwise;
    const int vector_count = std::max(1, static_cast<int>(c.warp_tile.n / lanes_));
    const double vectors = vector_count, pixels = block_pixels(c, arch_, vector_count);
    const double channels = static_cast<double>(out_channels_) * groups_, width = vectors * static_cast<double>(lanes_);
    const double wide = std::ceil(channels / width);
    const bool is_narrow = std::fmod(channels, width) != 0, spreads = s.c != s.g || s.k != s.g;
    // bf16, two products at once: of two channels of a group, or of two rows of taps where a group has but one.
    const bool pairs = c.dtype == DType::bf16 && c.dtype_b == DType::bf16 && c.warp_tile.k == 2 && !is_weight;
    const bool row_pairs = pairs && depthwise && !spreads;
    const bool channel_pairs = pairs && !depthwise && static_cast<std::int64_t>(channels_) % 2 == 0;
    const double inputs = channel_pairs ? channels_ / 2 : channels_;
    // Pairs of rows need registers for both, which many sums do not leave.
    constexpr double kPairSums = 20;
    const bool spills = row_pairs && pixels * vectors > kPairSums;
    const double sources = source_vectors(out_channels_, static_cast<std::int64_t>(inputs), lanes_);
    for (std::size_t i = 0; i < class_count_; ++i) {
        const TapClass& of = classes_[i];
        if (of.taps == 0) continue;
        const double line_taps = static_cast<double>(of.line_taps), tap_rows = static_cast<double>(of.taps) / line_taps;
        const double rows = (row_pairs ? std::ceil(tap_rows / 2) : tap_rows) * inputs;
        const double positions = of.positions * of.residues, lines = positions / of.line;
        const double blocks = lines * std::ceil(of.line / pixels) * wide;
        const SharedTaps shared = shared_taps(s, c, of.line_taps);
        const double step = problem_.op == Op::conv_bwd_data ? 1 : static_cast<double>(s.stride[s.in.rank - 1]);
        const double read_each =
            shared.any ? shared.rounds * ((pixels - 1) * step + shared.together) : line_taps * pixels;
        const double reads = blocks * tap_rows * inputs * vectors * read_each;
        w.products += positions * wide * vectors * line_taps * rows;
        w.reads += reads + (is_weight ? blocks * rows * shared.rounds * pixels * vectors : 0);
        w.spreads += spreads ? reads : 0;
        w.far_reads += reads * (sources - 1);
        w.spilled_reads += spills ? reads : 0;
        w.masked_reads += is_narrow ? reads / wide : 0;
        w.weight_reads +=
            is_weight ? lines * wide * rows * 2 * line_taps * vectors : blocks * rows * line_taps * vectors;
        w.rows += blocks * rows * shared.rounds;
        w.generic_rows += shared.compiled ? 0 : blocks * rows * shared.rounds;
        w.blocks += is_weight ? lines * wide * rows * shared.rounds : blocks;
        w.stores += is_weight ? 0 : positions * wide * vectors;
        w.lines += lines * blocks_of(static_cast<std::int64_t>(channels), c.tile.n);
    }
    w.packed = static_cast<double>(operand_elements(problem_)[is_weight ? 2 : 1]);
    return w;
}

}  // namespace tilewise
