// SPDX-License-Identifier: MIT
#include "select/diagonal_cost.hpp"

#include <algorithm>
#include <cmath>

#include "problem/facts.hpp"
#include "select/gpu_clock.hpp"

namespace tilewise {
namespace {

// The constants are estimates; none is measured yet.
constexpr double kMemoryReached = 0.75, kStartUs = 2.0, kSecondKernelUs = 2.5;
constexpr double kStepCycles =
    250;  // a line of a block that has a unit to itself: a barrier, ldmatrix, products one after the other

double tiles_of(double size, double unit) { return std::ceil(size / unit); }

}  // namespace

double predicted_diagonal_us(const Problem& p, const KernelConfig& c, const DepthwiseSpec& spec, const ArchSpec& arch) {
    const Extents out = p.op == Op::conv_bwd_data ? p.conv.in : output_size(p.conv);
    const int rank = out.rank;
    const bool weight = c.op == Op::conv_bwd_weight;
    const auto size = [&](int from_last) { return static_cast<double>(out[rank - 1 - from_last]); };
    const double stride = static_cast<double>(c.ct_stride[rank - 1]);
    const double columns = static_cast<double>(c.ct_filter[rank - 1]),
                 lines = static_cast<double>(c.ct_filter[rank - 2]);
    const double planes = rank > 2 ? static_cast<double>(c.ct_filter[0]) : 1;
    const double frames = static_cast<double>(p.conv.n) * (rank > 2 ? static_cast<double>(out[0]) : 1);
    const double column_tiles = tiles_of(size(0), spec.strip_width), across = tiles_of(size(0), column_tiles);
    const double reach = tiles_of((across - 1) * stride + columns, stride) * stride;
    const double most =
        std::max(1.0, std::min(std::floor(spec.strip_width / across), std::floor(spec.line_slots / reach)));
    const double frame_tiles = tiles_of(frames, most), held = tiles_of(frames, frame_tiles);
    const double channel_tiles = tiles_of(static_cast<double>(p.conv.g), c.tile.n);
    const double rows = column_tiles * frame_tiles * size(1), places = arch.units * spec.resident_blocks;
    const double parts =
        weight ? c.split_k
               : std::clamp(std::floor(places / channel_tiles), 1.0, tiles_of(rows, std::max(1, spec.strip_height)));
    const double blocks = channel_tiles * parts * (weight ? planes : 1), waves = tiles_of(blocks, places);
    // A block: its rows and the lines above and below that they share with others.
    const double each = tiles_of(rows, parts), walks = 1 + std::floor(each / (size(1) + 1));
    const double steps = each * stride + walks * (lines - stride);
    const double together = std::min<double>(spec.resident_blocks, tiles_of(blocks, arch.units));
    const double warp_steps = tiles_of(held * across, c.warp_tile.m) * c.wave.n * together;
    const double products =
        warp_steps * c.tile.n / c.wave.n / 8 * lines / stride * ((columns + 1) / 2) * (weight ? 1 : planes);
    constexpr double kProductCycles = 2, kIssued = 2.5, kPerProduct = 1.7, kPerStep = 60;  // of a unit
    const double cycles =
        std::max({kStepCycles, products * kProductCycles, (products * kPerProduct + warp_steps * kPerStep) / kIssued});
    const double issue_us = waves * steps * cycles / kCyclesPerUs;
    const double memory_us = bytes_moved(p) / (arch.memory_gbps * kMemoryReached * 1e3);
    double total = std::max(issue_us, memory_us) + 0.3 * std::min(issue_us, memory_us) + kStartUs + arch.launch_us;
    if (c.split_k > 1 && !c.cluster_k) {
        const double sums = 4.0 * static_cast<double>(product(p.conv.filter)) * static_cast<double>(p.conv.k);
        total += kSecondKernelUs + sums * c.split_k * 2 / (arch.cache_gbps * 1e3);
    }
    return total;
}

}  // namespace tilewise
