// SPDX-License-Identifier: MIT
#include "select/tensor_conv_cost.hpp"

#include <algorithm>
#include <cmath>

#include "base/rounding.hpp"
#include "config/geometry.hpp"
#include "config/im2col.hpp"
#include "problem/facts.hpp"
#include "run/tensor_grid.hpp"
#include "select/gpu_clock.hpp"
#include "select/machine_rates.hpp"

namespace tilewise {
namespace {

// All constants were fitted to 1900 times of 75 layers and up to 45 kernels each on an H200; cycles are of kCyclesPerUs.

bool is_alone(const KernelConfig& c) { return c.wave.m == 1; }
bool adds_in_workspace(const KernelConfig& c) { return c.split_k > 1 && !c.cluster_k; }

// Parts of the machine that work at the same time.
double together(std::initializer_list<double> parts, double sharpness) {
    double sum = 0;
    for (const double part : parts) sum += std::pow(part, sharpness);
    return std::pow(sum, 1 / sharpness);
}

// What of an average stage's lines is multiplied, and fetched: the last line of a group's channels may be short.
struct Shares {
    double multiplied = 1, fetched = 1;
};
Shares shares_of(const Problem& p, const KernelConfig& c) {
    if (!walks_taps(c) || p.op == Op::conv_bwd_weight) return {};
    const std::int64_t channels = gathered_channels(p);
    const auto room = static_cast<double>(channel_lines(c, channels) * channel_line(c));
    const double multiplied = static_cast<double>(round_up(channels, summed_unit(c))) / room;
    if (p.conv.g == 1) return {multiplied, static_cast<double>(channels) / room};
    // Groups that are no whole pieces of memory take longer; from three layers, forward.
    constexpr std::int64_t kPieceBytes = 32;
    constexpr double kBetween = 1.9;
    const bool between = channels * bytes_of(c.dtype) % kPieceBytes != 0;
    return {multiplied, between ? kBetween : 1};
}

// One stage: products, what passes through shared memory for them, and what comes through the L2 cache.
double stage_cycles(const KernelConfig& c, const ArchSpec& arch, double busy, const Shares& shares) {
    constexpr double kReached = 1.19, kAlone = 1.35, kLinesAlongN = 0.84, kLinesAlongBoth = 0.92;
    constexpr double kSharedBytesPerCycle = 128, kSharedReached = 1.265, kCacheReached = 0.894, kCrowding = 0.307;
    const double bytes = static_cast<double>(bytes_of(c.dtype)), taps = joined_taps(c);
    const double flops_per_cycle = peak_tflops(arch, c.dtype) * 1e6 / (arch.units * kCyclesPerUs);
    const double lines = c.op == Op::conv_bwd_data ? kLinesAlongN : c.op == Op::conv_bwd_weight ? kLinesAlongBoth : 1;
    const double products = 2.0 * c.tile.m * c.tile.n * c.tile.k / flops_per_cycle / kReached /
                            (is_alone(c) ? kAlone : 1) * lines * shares.multiplied;
    const double copied =
        ((c.tile.m + room_lines(c)) / taps + static_cast<double>(c.tile.n) / c.cluster.m) * c.tile.k * bytes;
    // Each product of 64 rows reads them, and all columns.
    const double read = c.tile.m / 64.0 * (64 + c.tile.n) * c.tile.k * bytes * shares.multiplied;
    const double shared = (read + copied) / (kSharedBytesPerCycle * kSharedReached);
    const double cache_per_cycle = arch.cache_gbps * 1e3 / (arch.units * kCyclesPerUs) * kCacheReached;
    const double cache = copied * shares.fetched / cache_per_cycle * std::pow(busy, kCrowding);
    // Two stages of several taps leave the copies little time.
    constexpr double kTwoStages = 1.59, kSharpness = 8;
    return together({products, shared, cache}, kSharpness) * (taps > 1 && c.stages <= 2 ? kTwoStages : 1);
}

// What a tile's results take, where nothing hides it.
double ending_cycles(const KernelConfig& c) {
    constexpr double kStart = 1170, kEach = 0.09, kHidden = 0.0545, kSums = 0.061;
    constexpr double kCluster = 3230, kClusterEach = 0.27;
    const double results = static_cast<double>(c.tile.m) * c.tile.n;
    double cycles = kStart + results * (c.pipeline == Pipeline::compv5 ? kHidden : kEach);
    if (adds_in_workspace(c)) cycles += results * kSums;
    if (c.cluster_k) cycles += kCluster + results * kClusterEach;
    return cycles;
}

double classes_of(const Problem& p, const KernelConfig& c) {
    double classes = 1;
    for (int d = 0; d < p.conv.in.rank && walks_taps(c); ++d)
        classes *= static_cast<double>(im2col_line(p, c, d).classes);
    return classes;
}

}  // namespace

double tensor_conv_us(const ProblemView& view, const KernelConfig& c, const ArchSpec& arch) {
    const Problem& p = view.problem;
    const double units = arch.units, tiles = static_cast<double>(tensor_conv_tiles(p, c));
    const double steps = static_cast<double>(tensor_conv_steps(p, c)) / classes_of(p, c) / c.split_k;
    const bool streams = c.stream_k != StreamK::off;
    const double stage = stage_cycles(c, arch, streams ? 1 : std::min(1.0, tiles / units), shares_of(p, c));
    const double results = static_cast<double>(c.tile.m) * c.tile.n, rounds = tiles / units;
    double cycles = 0;
    if (streams) {
        // Even shares, and sums that meet in pairs.
        constexpr double kMeeting = 17000, kMeetingEach = 0.122;
        cycles = rounds * std::max(1.0, steps) * stage + ending_cycles(c) * std::max(1.0, rounds) + kMeeting +
                 kMeetingEach * results * (std::log2(std::max(1.0, 1 / rounds)) + 1);
    } else {
        constexpr double kBetweenBlocks = 2100;
        cycles = std::ceil(rounds) * (std::max(1.0, steps) * stage + ending_cycles(c)) +
                 (c.persistent ? 0 : kBetweenBlocks) * (std::ceil(rounds) - 1);
    }
    constexpr double kMemoryReached = 1.0, kFillUs = 1.96, kWithMemory = 3;
    const double memory_us = bytes_moved(p) / (arch.memory_gbps * kMemoryReached * 1e3);
    double us = together({cycles / kCyclesPerUs, memory_us}, kWithMemory) + kFillUs;
    if (adds_in_workspace(c)) {
        constexpr double kUsPerMegabyte = 1.24, kSecondKernelUs = 12.2;
        us += static_cast<double>(view.elements[2]) * 4e-6 * c.split_k * kUsPerMegabyte + kSecondKernelUs;
    }
    return us;
}

}  // namespace tilewise
