// SPDX-License-Identifier: MIT
// Convolutions whose operands the tensor copy engine fetches (kernels/cuda/tensor_conv.hpp).
#include <algorithm>
#include <cmath>

#include "base/rounding.hpp"
#include "config/conv_tiles.hpp"
#include "config/geometry.hpp"
#include "config/im2col.hpp"
#include "family/cuda/block_product_work.hpp"
#include "family/cuda/chain_work.hpp"
#include "family/cuda/works.hpp"
#include "kernels/common/stream_slots.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

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
template <class N>
N uneven_lines(const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.im2col_conv;
    const std::int64_t channels = gathered_channels(p);
    if (!walks_taps(c) || channels % channel_line(c) == 0) return 1.0;
    constexpr std::int64_t kPieceBytes = 32;
    if (c.op == Op::conv_bwd_weight && (p.conv.g == 1 || channels * bytes_of(c.dtype) % kPieceBytes == 0)) return 1.0;
    if (p.conv.g > 1) return N(1.0) + N(price.begin_anywhere_share);
    return N(1.0) + N(price.zeros_follow_share) / static_cast<double>(channel_lines(c, channels));
}

// The copy engine's time for a stage: by rows, whatever their length; pixels that it has to find take it longer, and rows that
// lie outside of their tensor, in part or all of it, several times as long.
template <class N>
N copy_cycles(const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.im2col_conv;
    const std::int64_t depth_elements = depth_bytes(c) / bytes_of(c.dtype),
                       column_elements = column_line_bytes(c) / bytes_of(c.dtype_b);
    const auto depth_line = static_cast<double>(depth_elements), column_line = static_cast<double>(column_elements);
    const double m = c.tile.m, n = c.tile.n, depth = c.tile.k;
    double pixels = (m + room_lines(c)) * depth / (depth_line * joined_taps(c)), rows = n * depth / depth_line;
    if (c.op == Op::conv_bwd_data) rows = n * depth / column_line;
    if (c.op == Op::conv_bwd_weight) pixels = n / column_line * depth, rows = m / 64 * depth;
    return term<N>("pixels", pixels, walks_taps(c) ? price.pixel_cycles : price.row_cycles) *
               uneven_lines<N>(p, c, arch) +
           term<N>("rows", rows, price.row_cycles) *
               (N(1.0) + N(price.outside_share) * counted<N>("outside", outside_share(p, c)));
}

// The shares of an average stage's lines that are multiplied and fetched: the last line of a group's channels may be short.
template <class N>
struct Shares {
    double multiplied;
    N fetched;
};
template <class N>
Shares<N> shares_of(const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    if (!walks_taps(c)) return {1, 1.0};
    const std::int64_t channels = gathered_channels(p);
    // Groups that are no whole pieces of memory take longer; from three layers each, forward and backward weight.
    constexpr std::int64_t kPieceBytes = 32;
    const bool between = p.conv.g > 1 && channels * bytes_of(c.dtype) % kPieceBytes != 0;
    const N fetched = between ? N(arch.prices.im2col_conv.between_pieces_share) : N(1.0);
    if (p.op == Op::conv_bwd_weight) return {1, fetched};
    const auto room = static_cast<double>(channel_lines(c, channels) * channel_line(c));
    const double multiplied = static_cast<double>(round_up(channels, summed_unit(c))) / room;
    if (p.conv.g == 1) return {multiplied, static_cast<double>(channels) / room};
    return {multiplied, fetched};
}

// How much longer products take whose operands have lines along n, or along both sides.
template <class N>
N turned_lines(const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.im2col_conv;
    if (c.op == Op::conv_fwd) return 1.0;
    return N(c.op == Op::conv_bwd_data ? price.lines_along_n_share : price.lines_along_both_share);
}

// One stage: products, what passes through shared memory for them, what comes through the L2 cache, and the copy engine.
template <class N>
N stage_cycles(const Problem& p, const KernelConfig& c, const ArchSpec& arch, double busy) {
    const auto& price = arch.prices.im2col_conv;
    const Shares<N> shares = shares_of<N>(p, c, arch);
    const double bytes = static_cast<double>(bytes_of(c.dtype)), taps = joined_taps(c);
    const N unit_cycles = N(arch.prices.clock.cycles_per_us) * arch.units;
    const N flops_per_cycle = peak_tflops<N>(arch, c.dtype) * 1e6 / unit_cycles;
    const N whole = N(2.0 * c.tile.m * c.tile.n * c.tile.k) / flops_per_cycle / N(price.reached_share);
    const N products = named("products", (is_alone(c) ? whole / N(price.alone_share) : whole) *
                                             turned_lines<N>(c, arch) * counted<N>("multiplied", shares.multiplied));
    const double copied =
        ((c.tile.m + room_lines(c)) / taps + static_cast<double>(c.tile.n) / c.cluster.m) * c.tile.k * bytes;
    // Each product of 64 rows reads them, and all columns.
    constexpr double kSharedBytesPerCycle = 128;
    const double read = c.tile.m / 64.0 * (64 + c.tile.n) * c.tile.k * bytes * shares.multiplied;
    const N shared =
        named("shared memory", N(read + copied) / (N(kSharedBytesPerCycle) * N(price.shared_reached_share)));
    const N cache_per_cycle = rate<N>(arch.cache_gbps) * 1e3 / unit_cycles * N(price.cache_reached_share);
    const N cache = named("cache", N(copied) * shares.fetched / cache_per_cycle *
                                       (busy == 1 ? N(1.0) : power(N(busy), N(price.crowding_exponent))));
    const N stage =
        soft_max(N(price.sharpness), {products, shared, cache, named("copies", copy_cycles<N>(p, c, arch))});
    // Two stages of several taps leave the copies little time.
    return taps > 1 && c.stages <= 2 ? stage * N(price.two_stages_share) : stage;
}

// A tile's results, where nothing hides the time they take.
template <class N>
N ending_cycles(const KernelConfig& c, const ArchSpec& arch, double classes) {
    const auto& price = arch.prices.im2col_conv;
    const double results = static_cast<double>(c.tile.m) * c.tile.n;
    N cycles =
        N(price.start_cycles) +
        term<N>("results", results, c.pipeline == Pipeline::compv5 ? price.hidden_result_cycles : price.result_cycles);
    if (adds_in_workspace(c)) cycles = cycles + term<N>("sums", results, price.sum_cycles);
    // Pixels of a class are apart, and leave by ordinary stores.
    if (classes > 1) cycles = cycles + term<N>("results apart", results, price.apart_cycles);
    if (c.cluster_k) {
        cycles = cycles + N(price.cluster_cycles) + term<N>("cluster's sums", results, price.cluster_result_cycles);
    }
    return cycles;
}

double classes_of(const Problem& p, const KernelConfig& c) {
    double classes = 1;
    for (int d = 0; d < p.conv.in.rank && walks_taps(c); ++d) classes *= static_cast<double>(im2col_classes(p, d));
    return classes;
}

// Stream-K: tiles that fill the units whole times, then those left over, whose sums meet in pairs where blocks share them.
template <class N>
N streamed_cycles(const KernelConfig& c, const ArchSpec& arch, double tiles, double tile_steps, N stage, N end) {
    const auto& price = arch.prices.im2col_conv;
    const double units = arch.units, full = std::floor(tiles / units), rest = tiles - full * units;
    const N cycles = counted<N>("rounds", full) * (stage * tile_steps + end);
    if (rest == 0) return cycles;
    const unsigned sharers =
        stream_sharers(static_cast<unsigned>(units / rest), static_cast<unsigned>(std::max(1.0, tile_steps)));
    const N last = cycles + stage * std::ceil(tile_steps / sharers) + end;
    if (sharers <= 1) return last;
    const double results = static_cast<double>(c.tile.m) * c.tile.n;
    return last + N(price.meeting_cycles) +
           term<N>("sums that meet", results * std::ceil(std::log2(sharers)), price.meeting_result_cycles);
}

}  // namespace

template <class N>
N im2col_conv_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan*) {
    const ArchSpec& arch = problem.arch;
    const auto& price = arch.prices.im2col_conv;
    const Problem& p = problem.view.problem;
    const double units = usable_units(c, arch), classes = classes_of(p, c);
    const auto tiles = static_cast<double>(tensor_conv_tiles(p, problem.view.gemm, c));
    const double steps =
        std::max(1.0, static_cast<double>(tensor_conv_steps(p, problem.view.gemm, c)) / classes / c.split_k);
    const bool streams = c.stream_k != StreamK::off;
    const N stage = named("stage", stage_cycles<N>(p, c, arch, streams ? 1 : std::min(1.0, tiles / units)));
    const N chain = adds_in_workspace(c) ? N(0.0) : exposed_chain_cycles<N>(problem, c, 1, stage * steps);
    const N end = named("ending", ending_cycles<N>(c, arch, classes) + named("chain", chain));
    const double rounds = std::ceil(tiles / units);
    N cycles = streams ? streamed_cycles<N>(c, arch, tiles, steps, stage, end)
                       : counted<N>("rounds", rounds) * (stage * counted<N>("steps", steps) + end);
    if (!streams && !c.persistent) cycles = cycles + term<N>("between blocks", rounds - 1, price.between_blocks_cycles);
    const N memory = bytes_us<N>("memory", problem.bytes, rate<N>(arch.memory_gbps) * N(price.memory_reached_share));
    const N us = soft_max(N(price.memory_sharpness), {cycles_us<N>("tiles", cycles, arch), memory}) + N(price.fill_us);
    if (!adds_in_workspace(c)) return us;
    const double megabytes = static_cast<double>(problem.view.elements[2]) * 4e-6 * c.split_k;
    return us + term<N>("sums in workspace", megabytes, price.sum_us_per_megabyte) + N(price.second_kernel_us);
}
template double im2col_conv_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term im2col_conv_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted im2col_conv_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Least im2col_conv_work<Least>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

}  // namespace tilewise
