// SPDX-License-Identifier: MIT
#include "select/tensor_conv_cost.hpp"

#include <algorithm>
#include <cmath>

#include "base/rounding.hpp"
#include "config/conv_tiles.hpp"
#include "config/geometry.hpp"
#include "config/im2col.hpp"
#include "kernels/common/stream_slots.hpp"
#include "problem/facts.hpp"
#include "select/gpu_clock.hpp"
#include "select/machine_rates.hpp"

namespace tilewise {
namespace {

// All constants were fitted to 1560 times of 168 problems on an H200, of each half to see that they hold for the other; cycles are
// of kCyclesPerUs.

bool is_alone(const KernelConfig& c) { return c.wave.m == 1; }
bool adds_in_workspace(const KernelConfig& c) { return c.split_k > 1 && !c.cluster_k; }

double whole_tiles(std::int64_t size, std::int64_t tile) { return blocks_of(size, tile) * static_cast<double>(tile); }

// The share of the rows that come without a walk over pixels, and of which the tensor does not have all bytes.
double outside_share(const Problem& p, const KernelConfig& c) {
    const std::int64_t k = p.conv.k / p.conv.g, channels = p.conv.c / p.conv.g;
    if (c.op == Op::conv_fwd) return 1 - static_cast<double>(k) / whole_tiles(k, c.tile.n);
    const bool weight = c.op == Op::conv_bwd_weight;
    const std::int64_t size = weight ? k : channels, tile = weight ? c.tile.m : c.tile.n;
    const std::int64_t line = weight ? 64 : column_line_bytes(c) / bytes_of(c.dtype_b);
    const std::int64_t whole_lines = size / line * line;
    return 1 - static_cast<double>(whole_lines) / whole_tiles(size, tile);
}

// How much longer the pixels of a walk take where a group's channels do not fill lines: zeros follow the last ones of a single
// group; the lines of several begin anywhere, so each is two in memory.
double uneven_lines(const Problem& p, const KernelConfig& c) {
    constexpr double kZerosFollow = 0.7, kBeginAnywhere = 1.8;
    const std::int64_t channels = gathered_channels(p);
    if (!walks_taps(c) || channels % channel_line(c) == 0) return 1;
    constexpr std::int64_t kPieceBytes = 32;
    if (c.op == Op::conv_bwd_weight && (p.conv.g == 1 || channels * bytes_of(c.dtype) % kPieceBytes == 0)) return 1;
    return 1 + (p.conv.g > 1 ? kBeginAnywhere : kZerosFollow / static_cast<double>(channel_lines(c, channels)));
}

// The copy engine's time for a stage: by rows, whatever their length; pixels that it has to find take it longer, and rows that
// lie outside of their tensor, in part or all of it, several times as long.
double copy_cycles(const Problem& p, const KernelConfig& c) {
    constexpr double kPixel = 2.36, kRow = 0.87, kOutside = 5.3;
    const std::int64_t depth_elements = depth_bytes(c) / bytes_of(c.dtype),
                       column_elements = column_line_bytes(c) / bytes_of(c.dtype_b);
    const auto depth_line = static_cast<double>(depth_elements), column_line = static_cast<double>(column_elements);
    const double m = c.tile.m, n = c.tile.n, depth = c.tile.k;
    double pixels = (m + room_lines(c)) * depth / (depth_line * joined_taps(c)), rows = n * depth / depth_line;
    if (c.op == Op::conv_bwd_data) rows = n * depth / column_line;
    if (c.op == Op::conv_bwd_weight) pixels = n / column_line * depth, rows = m / 64 * depth;
    return pixels * (walks_taps(c) ? kPixel : kRow) * uneven_lines(p, c) +
           rows * kRow * (1 + kOutside * outside_share(p, c));
}

// What of an average stage's lines is multiplied, and fetched: the last line of a group's channels may be short.
struct Shares {
    double multiplied = 1, fetched = 1;
};
Shares shares_of(const Problem& p, const KernelConfig& c) {
    if (!walks_taps(c)) return {};
    const std::int64_t channels = gathered_channels(p);
    // Groups that are no whole pieces of memory take longer; from three layers each, forward and backward weight.
    constexpr std::int64_t kPieceBytes = 32;
    constexpr double kBetween = 1.9;
    const double fetched = p.conv.g > 1 && channels * bytes_of(c.dtype) % kPieceBytes != 0 ? kBetween : 1;
    if (p.op == Op::conv_bwd_weight) return {1, fetched};
    const auto room = static_cast<double>(channel_lines(c, channels) * channel_line(c));
    const double multiplied = static_cast<double>(round_up(channels, summed_unit(c))) / room;
    if (p.conv.g == 1) return {multiplied, static_cast<double>(channels) / room};
    return {multiplied, fetched};
}

// One stage: products, what passes through shared memory for them, what comes through the L2 cache, and the copy engine.
double stage_cycles(const Problem& p, const KernelConfig& c, const ArchSpec& arch, double busy) {
    constexpr double kReached = 1.27, kAlone = 1.5, kLinesAlongN = 1.065, kLinesAlongBoth = 0.75;
    constexpr double kSharedBytesPerCycle = 128, kSharedReached = 1.53, kCacheReached = 1.68, kCrowding = 1.64;
    const Shares shares = shares_of(p, c);
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
    constexpr double kTwoStages = 1.37, kSharpness = 4;
    return side_by_side({products, shared, cache, copy_cycles(p, c)}, kSharpness) *
           (taps > 1 && c.stages <= 2 ? kTwoStages : 1);
}

// What a tile's results take, where nothing hides it.
double ending_cycles(const KernelConfig& c, double classes) {
    constexpr double kStart = 1320, kEach = 0.034, kHidden = 0.005, kSums = 0.073, kApart = 0.134;
    constexpr double kCluster = 4480, kClusterEach = 0.13;
    const double results = static_cast<double>(c.tile.m) * c.tile.n;
    double cycles = kStart + results * (c.pipeline == Pipeline::compv5 ? kHidden : kEach);
    if (adds_in_workspace(c)) cycles += results * kSums;
    if (classes > 1) cycles += results * kApart;  // pixels of a class are apart, and leave by ordinary stores
    if (c.cluster_k) cycles += kCluster + results * kClusterEach;
    return cycles;
}

double classes_of(const Problem& p, const KernelConfig& c) {
    double classes = 1;
    for (int d = 0; d < p.conv.in.rank && walks_taps(c); ++d)
        classes *= static_cast<double>(im2col_line(p, c, d).classes);
    return classes;
}

// Stream-K: tiles that fill the units whole times, then those left over, whose sums meet in pairs where blocks share them.
double streamed_cycles(const KernelConfig& c, double tiles, double units, double tile_steps, double stage, double end) {
    constexpr double kMeeting = 5000, kMeetingEach = 0.3;
    const double full = std::floor(tiles / units), rest = tiles - full * units;
    const double cycles = full * (tile_steps * stage + end);
    if (rest == 0) return cycles;
    const unsigned sharers =
        stream_sharers(static_cast<unsigned>(units / rest), static_cast<unsigned>(std::max(1.0, tile_steps)));
    const double results = static_cast<double>(c.tile.m) * c.tile.n;
    const double meeting = sharers > 1 ? kMeeting + kMeetingEach * results * std::ceil(std::log2(sharers)) : 0;
    return cycles + std::ceil(tile_steps / sharers) * stage + end + meeting;
}

}  // namespace

double tensor_conv_us(const ProblemView& view, const KernelConfig& c, const ArchSpec& arch) {
    const Problem& p = view.problem;
    const double units = arch.units, tiles = static_cast<double>(tensor_conv_tiles(p, c)), classes = classes_of(p, c);
    const double steps = std::max(1.0, static_cast<double>(tensor_conv_steps(p, c)) / classes / c.split_k);
    const bool streams = c.stream_k != StreamK::off;
    const double stage = stage_cycles(p, c, arch, streams ? 1 : std::min(1.0, tiles / units));
    const double end = ending_cycles(c, classes), rounds = std::ceil(tiles / units);
    constexpr double kBetweenBlocks = 4000;
    const double cycles = streams ? streamed_cycles(c, tiles, units, steps, stage, end)
                                  : rounds * (steps * stage + end) + (c.persistent ? 0 : kBetweenBlocks) * (rounds - 1);
    constexpr double kMemoryReached = 1.0, kFillUs = 3.44, kWithMemory = 3;
    const double memory_us = bytes_moved(p) / (arch.memory_gbps * kMemoryReached * 1e3);
    double us = side_by_side({cycles / kCyclesPerUs, memory_us}, kWithMemory) + kFillUs;
    if (adds_in_workspace(c)) {
        constexpr double kUsPerMegabyte = 2.04, kSecondKernelUs = 9.5;
        us += static_cast<double>(view.elements[2]) * 4e-6 * c.split_k * kUsPerMegabyte + kSecondKernelUs;
    }
    return us;
}

}  // namespace tilewise
