// SPDX-License-Identifier: MIT
// Depthwise convolutions by matrix instructions: Toeplitz bands and block diagonals.
#include <algorithm>

#include "base/rounding.hpp"
#include "config/depthwise_spec.hpp"
#include "config/family_id.hpp"
#include "family/cuda/works.hpp"
#include "family/gpu/depthwise_grid.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

// Times 16 channels that a warp has.
double pairs_of(const KernelConfig& c) {
    const int channels = c.tile.n / c.wave.n;
    return family_of(c) == FamilyId::depthwise_toeplitz ? 1 : channels / 16.0;
}

// Instructions of a warp for a line, about as the compiled code has them.
double step_instructions(const KernelConfig& c) {
    const int rank = c.ct_filter.rank;
    const auto lines = static_cast<double>(c.ct_filter[rank - 2]), columns = static_cast<double>(c.ct_filter[rank - 1]);
    const auto stride = static_cast<double>(c.ct_stride[rank - 1]);
    const double planes = rank > 2 ? static_cast<double>(c.ct_filter[0]) : 1;
    const bool weight = c.op == Op::conv_bwd_weight;
    if (family_of(c) == FamilyId::depthwise_toeplitz) return (weight ? 107 : 95) + 2 * lines;
    const double pairs = pairs_of(c), products = 2 * lines / stride * (columns + 1) / 2;
    return (weight ? 25 : 30) + pairs * ((weight ? 4 : 18 / stride) + (weight ? 1 : planes) * (products + 3));
}

// Sectors touched, for each that a block's pieces of pixels fill: where pixels are no whole sectors, pieces begin and end within some.
double sectors_touched(const Problem& p, const KernelConfig& c) {
    constexpr std::int64_t kSectorBytes = 32;
    const std::int64_t pixel_bytes = p.conv.g * bytes_of(c.dtype), piece_bytes = c.tile.n * bytes_of(c.dtype);
    if (piece_bytes >= pixel_bytes || pixel_bytes % kSectorBytes == 0) return 1;
    return static_cast<double>(piece_bytes + kSectorBytes) / static_cast<double>(piece_bytes);
}

// Steps of a block over lines, those that a later tile takes until its first line is there included; bands add up lines of both
// tensors, which are turned around first.
template <class N>
N walked_lines(const KernelConfig& c, const DepthwiseShare& share, const ArchSpec& arch) {
    const auto& price = arch.prices.depthwise_matrix;
    const int rank = c.ct_filter.rank;
    const auto lines = static_cast<double>(c.ct_filter[rank - 2]), stride = static_cast<double>(c.ct_stride[rank - 2]);
    const bool band = family_of(c) == FamilyId::depthwise_toeplitz, weight = c.op == Op::conv_bwd_weight;
    const auto walks = static_cast<double>(share.walks);
    const Price& walk_lines = !band ? price.walk_lines : weight ? price.band_sum_walk_lines : price.band_walk_lines;
    return counted<N>("lines", static_cast<double>(share.rows) * stride + walks * (lines - stride)) +
           term<N>("walks", walks - 1, walk_lines);
}

// Whole lines of memory, or all that a pixel has, are faster.
template <class N>
N whole_channels(const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.depthwise_matrix;
    constexpr int kLineChannels = 64;
    if (c.tile.n < kLineChannels) return 1.0;
    if (c.tile.n >= p.conv.g) return N(price.whole_pixels_share);
    const bool lines = c.op != Op::conv_bwd_weight || c.ct_stride[c.ct_filter.rank - 2] == 1;
    return lines ? N(price.whole_lines_share) : N(1.0);
}

}  // namespace

template <class N>
N depthwise_matrix_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan*) {
    const ArchSpec& arch = problem.arch;
    const auto& price = arch.prices.depthwise_matrix;
    const Problem& p = problem.view.problem;
    const DepthwiseSpec spec = depthwise_spec(c, arch);
    const DepthwiseShare share = depthwise_share(p, c, arch);
    const bool band = family_of(c) == FamilyId::depthwise_toeplitz, weight = c.op == Op::conv_bwd_weight;
    const N start = N(band ? price.band_start_us : price.start_us);
    const std::int64_t places = std::int64_t{arch.units} * spec.resident_blocks;
    const auto waves = static_cast<double>(ceil_div(share.blocks, places));
    const auto together =
        static_cast<double>(std::min<std::int64_t>(spec.resident_blocks, ceil_div(share.blocks, arch.units)));
    const double warps = c.wave.m * c.wave.n;
    // A step of a block alone, or of one that only adds up, and what a unit's blocks issue.
    const N step =
        longest({N(weight && !band ? price.sum_cycles : price.step_cycles),
                 counted<N>("instructions", together * warps * step_instructions(c)) / N(price.issued_per_cycle)});
    const N busy =
        named("busy", cycles_us<N>("steps", counted<N>("waves", waves) * walked_lines<N>(c, share, arch) * step, arch) +
                          start * (waves - 1));
    const N memory = bytes_us<N>("memory", problem.bytes * sectors_touched(p, c),
                                 rate<N>(arch.memory_gbps) * N(price.memory_reached_share));
    const N total = (overlap(N(price.overlapped_share), {busy, memory}) + start + rate<N>(arch.launch_us) +
                     term<N>("pairs", pairs_of(c) - 1, price.pair_start_us)) *
                    whole_channels<N>(p, c, arch);
    if (c.cluster_k) return total + N(price.cluster_us);
    if (c.split_k <= 1) return total;
    const double sums = 4.0 * static_cast<double>(product(p.conv.filter)) * static_cast<double>(p.conv.k);
    return total + N(price.second_kernel_us) + bytes_us<N>("sums", sums * c.split_k * 2, rate<N>(arch.cache_gbps));
}
template double depthwise_matrix_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term depthwise_matrix_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted depthwise_matrix_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

}  // namespace tilewise
