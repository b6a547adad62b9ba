// SPDX-License-Identifier: MIT
#include "select/depthwise_matrix_cost.hpp"

#include <algorithm>

#include "base/rounding.hpp"
#include "family/cuda/depthwise_grid.hpp"
#include "problem/facts.hpp"
#include "select/gpu_clock.hpp"

namespace tilewise {
namespace {

// Fitted to 138 times on an H200; what whole lines and whole pixels gain, and bands, to another 60.
constexpr double kMatrixMemoryReached = 0.98, kOverlapped = 0.5;
constexpr double kStartUs = 2.6, kBandStartUs = 1.4;  // until the first line is there
constexpr double kPairStartUs = 1.0;                  // for every further 16 channels of a warp
// Lines that the same takes in a later tile; bands add up lines of both tensors, which are turned around first.
constexpr double kWalkLines = 7, kBandWalkLines = 2, kBandSumWalkLines = 15;
constexpr double kIssued = 2.9;                        // instructions of a unit in a cycle
constexpr double kStepCycles = 390, kSumCycles = 250;  // a step of a block alone, and of one that only adds up
constexpr double kSecondKernelUs = 2.3, kClusterUs = 2.2;
// Where the channels of a block are whole lines of memory, and where they are all that a pixel has.
constexpr double kWholeLines = 0.9, kWholePixels = 0.86;

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

// Of those that a block's pieces of pixels fill: where pixels are no whole sectors, pieces begin and end within some.
double sectors_touched(const Problem& p, const KernelConfig& c) {
    constexpr std::int64_t kSectorBytes = 32;
    const std::int64_t pixel_bytes = p.conv.g * bytes_of(c.dtype), piece_bytes = c.tile.n * bytes_of(c.dtype);
    if (piece_bytes >= pixel_bytes || pixel_bytes % kSectorBytes == 0) return 1;
    return static_cast<double>(piece_bytes + kSectorBytes) / static_cast<double>(piece_bytes);
}

}  // namespace

double predicted_depthwise_matrix_us(const Problem& p, const KernelConfig& c, const DepthwiseSpec& spec,
                                     const ArchSpec& arch) {
    const DepthwiseShare share = depthwise_share(p, c, arch);
    const int rank = c.ct_filter.rank;
    const auto lines = static_cast<double>(c.ct_filter[rank - 2]), stride = static_cast<double>(c.ct_stride[rank - 2]);
    const bool band = family_of(c) == FamilyId::depthwise_toeplitz, weight = c.op == Op::conv_bwd_weight;
    const double walks = static_cast<double>(share.walks), start_us = band ? kBandStartUs : kStartUs;
    const double walk_lines = !band ? kWalkLines : weight ? kBandSumWalkLines : kBandWalkLines;
    const double steps = static_cast<double>(share.rows) * stride + walks * (lines - stride) + (walks - 1) * walk_lines;
    const std::int64_t places = std::int64_t{arch.units} * spec.resident_blocks;
    const auto waves = static_cast<double>(ceil_div(share.blocks, places));
    const auto together =
        static_cast<double>(std::min<std::int64_t>(spec.resident_blocks, ceil_div(share.blocks, arch.units)));
    const double warps = c.wave.m * c.wave.n;
    const bool adds_up = weight && !band;
    const double step = std::max(adds_up ? kSumCycles : kStepCycles, together * warps * step_instructions(c) / kIssued);
    const double busy_us = waves * steps * step / kCyclesPerUs + (waves - 1) * start_us;
    const double memory_us = bytes_moved(p) * sectors_touched(p, c) / (arch.memory_gbps * kMatrixMemoryReached * 1e3);
    double total =
        std::max(busy_us, memory_us) + kOverlapped * std::min(busy_us, memory_us) + start_us + arch.launch_us;
    total += (pairs_of(c) - 1) * kPairStartUs;
    constexpr int kLineChannels = 64;
    if (c.tile.n >= kLineChannels && c.tile.n >= p.conv.g) {
        total *= kWholePixels;
    } else if (c.tile.n >= kLineChannels && (!weight || stride == 1)) {
        total *= kWholeLines;
    }
    if (c.cluster_k) total += kClusterUs;
    if (c.split_k > 1 && !c.cluster_k) {
        const double sums = 4.0 * static_cast<double>(product(p.conv.filter)) * static_cast<double>(p.conv.k);
        total += kSecondKernelUs + sums * c.split_k * 2 / (arch.cache_gbps * 1e3);
    }
    return total;
}

}  // namespace tilewise
