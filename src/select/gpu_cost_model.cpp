// SPDX-License-Identifier: MIT
#include "select/gpu_cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "config/family_id.hpp"
#include "config/geometry.hpp"
#include "config/packing.hpp"
#include "kernels/common/stream_slots.hpp"
#include "select/gpu_conv_cost.hpp"
#include "select/machine_rates.hpp"

namespace tilewise {
namespace {

// All constants were fitted to times of kernels of the default set on an H200 (docs/performance/cuda-gemm.md says how well).
constexpr double kSharpness = 4.3;     // how much the longest time counts
constexpr double kPeakReached = 1.07;  // of the arch file's peak, by the best inner loop at its best
constexpr double kMemoryReached = 0.98;
constexpr double kFillUs = 0.37;  // filling the ring before the first product, and the last results after it

// What overlaps takes about as long as the longest of all, and a little more the closer they are.
double overlapped(std::initializer_list<double> times) {
    const double longest = std::max(times);
    if (longest <= 0) return 0;
    double sum = 0;
    for (const double time : times) sum += std::pow(time / longest, kSharpness);
    return longest * std::pow(sum, 1 / kSharpness);
}

bool is_plain_arithmetic(const KernelConfig& c) { return c.dtype == DType::fp32 && c.warp_tile.k == 1; }

// Of plain arithmetic: the more sums a thread has, the fewer reads of shared memory for each product; every tile costs a barrier and
// the addresses of its copies, more of them where they bring single elements.
double plain_efficiency(const KernelConfig& c, const ArchSpec& arch) {
    constexpr double kReached = 0.725, kTileSteps = 0.6, kReads = 0.3, kReadsOfSums = 2.1, kLeastReads = 0.186;
    constexpr double kNarrow = 0.85, kSingle = 0.9, kNotAhead = 0.86;
    // Reads for a product, of a thread whose sums are about a square.
    const double reads = kReadsOfSums / std::sqrt(static_cast<double>(accumulators_per_thread(c, arch)));
    const bool async = c.pipeline == Pipeline::comp_async || c.pipeline == Pipeline::mem;
    return kReached / (1 + kReads * std::max(0.0, reads - kLeastReads)) / (1 + kTileSteps / c.tile.k) *
           (c.warp_tile.n < 64 ? kNarrow : 1) * (c.vector_a == 1 || c.vector_b == 1 ? kSingle : 1) *
           (async ? 1 : kNotAhead);
}

// Of fp64 matrix units, whose peak is that of plain fp32: operands are converted on their way, the more for each product the fewer
// products a wave makes of them.
double double_efficiency(const KernelConfig& c) {
    constexpr double kReached = 0.88, kTileSteps = 0.66, kConversions = 5, kLeastConversions = 0.047;
    const double rows = static_cast<double>(c.tile.m) / c.wave.m, columns = static_cast<double>(c.tile.n) / c.wave.n;
    const double conversions = (rows + columns) / (rows * columns);
    return kReached / (1 + kConversions * std::max(0.0, conversions - kLeastConversions)) / (1 + kTileSteps / c.tile.k);
}

// The share of a unit's peak that a kernel's inner loop reaches. Warpgroup products run at full speed from 128 columns on;
// mma.sync reaches a third of that on chips that have warpgroups; loads through registers halve it.
double inner_efficiency(const KernelConfig& c, const ArchSpec& arch) {
    if (has_wide_waves(c, arch)) {
        constexpr double kWhole = 0.99, kNarrow = 0.37;
        return kWhole * (kNarrow + (1 - kNarrow) * std::min(1.0, c.warp_tile.n / 128.0));
    }
    if (family_of(c) == FamilyId::fp64_gemm) return double_efficiency(c);
    if (is_plain_arithmetic(c)) {
        return plain_efficiency(c, arch);
    }
    constexpr double kBeside = 0.335, kAlone = 0.85, kSmall = 0.76, kThroughRegisters = 0.5;
    const double shape = std::min(1.0, std::sqrt(static_cast<double>(c.tile.m) * c.tile.n) / 128.0);
    const bool has_warpgroups = arch.wide_wave_rows > 0 && bytes_of(c.dtype) < 4;
    const bool async = c.pipeline == Pipeline::comp_async || c.pipeline == Pipeline::mem;
    // Lines that begin anywhere are put together, which takes longer than to multiply them.
    constexpr double kAnywhere = 0.5;
    const bool anywhere = (c.vector_a == 1 || c.vector_b == 1) && bytes_of(c.dtype) < 4;
    return (has_warpgroups ? kBeside : kAlone) * (kSmall + (1 - kSmall) * shape) * (async ? 1.0 : kThroughRegisters) *
           (anywhere ? kAnywhere : 1.0);
}

// Blocks that share a unit: a persistent kernel has one, others as many as shared memory, registers and threads allow.
double blocks_per_unit(const KernelConfig& c, const ArchSpec& arch) {
    if (c.persistent) return 1;
    constexpr double kOwnBytes = 1024, kRegisterStep = 8, kMostRegisters = 255, kMostThreads = 2048, kMost = 32;
    constexpr double kOtherRegistersWide = 48, kOtherRegisters = 70;
    const auto threads = static_cast<double>(threads_per_block(c, arch));
    const bool wide = has_wide_waves(c, arch);
    // Warpgroups that hand registers over take all there are.
    const bool whole = wide && wave_count(c) > 1 && !c.cluster_k;
    const double own =
        static_cast<double>(accumulators_per_thread(c, arch)) + (wide ? kOtherRegistersWide : kOtherRegisters);
    const double each = std::ceil(std::min(kMostRegisters, own) / kRegisterStep) * kRegisterStep;
    const double by_registers = whole ? 1 : std::floor(static_cast<double>(arch.registers) / (each * threads));
    const double block_bytes = static_cast<double>(shared_bytes(c, arch)) / c.blocks_per_unit;
    const double by_memory = std::floor(static_cast<double>(arch.shared_bytes) / (block_bytes + kOwnBytes));
    // As many as the config asks for get the registers they need.
    return std::clamp(std::min({by_memory, by_registers, std::floor(kMostThreads / threads)}),
                      static_cast<double>(c.blocks_per_unit), kMost);
}

// Units come in groups, and the blocks of a cluster in one of them, so that some units stay empty.
double usable_units(const KernelConfig& c, const ArchSpec& arch) {
    constexpr double kReachedByMore = 0.9;  // than two blocks
    const int together = c.cluster_k ? c.split_k : c.cluster.m * c.cluster.n;
    const double units = together <= 2 ? arch.units : arch.units * kReachedByMore;
    return std::max<double>(together, std::floor(units / together) * together);
}

// What the tiles of a kernel cost, the same for each.
struct TileCost {
    double flops, bytes, memory_bytes;  // through the cache; of memory, as its share of all
    double store_us;
};

TileCost tile_cost(const KernelConfig& c, const ArchSpec& arch, double depth, double memory_bytes, bool one_row) {
    // Blocks of a cluster read the operand they share once. Rows that all blocks read at about the same time, and that stay in the
    // cache, come sooner than others.
    constexpr double kSameForAll = 0.5;
    const double rows =
        static_cast<double>(c.tile.m) / c.cluster.n * (one_row && has_wide_waves(c, arch) ? kSameForAll : 1);
    const double lines = rows + static_cast<double>(c.tile.n) / c.cluster.m;
    // Warpgroups write element by element where tensor copies cannot; other warps do where accesses are less than whole.
    constexpr double kElementsPerUs = 6.7e3, kSingleElementsPerUs = 2.9e3;
    const bool wide = has_wide_waves(c, arch), whole = access_bytes(c, 2) == arch.load_bytes;
    const bool by_elements = wide ? (c.swap_ab || !whole) && !c.cluster_k : !whole;
    const double elements_per_us = wide ? kElementsPerUs : kSingleElementsPerUs * c.vector_c;
    return {2.0 * c.tile.m * c.tile.n * depth, lines * depth * static_cast<double>(bytes_of(c.dtype)), memory_bytes,
            by_elements ? c.tile.m * c.tile.n / elements_per_us : 0};
}

// The part of its speed that the arithmetic of a unit with so many blocks reaches.
double filled(const KernelConfig& c, const ArchSpec& arch, double sharing) {
    // A warpgroup that has the unit to itself has more of the clock; plain arithmetic leaves gaps where there are few warps, the
    // more the fewer sums they have.
    constexpr double kAlone = 2.4, kEnoughWarps = 8, kGap = 12.8, kWidestGap = 0.5;
    if (has_wide_waves(c, arch)) return wave_count(c) == 1 && sharing == 1 ? kAlone : 1;
    if (!is_plain_arithmetic(c)) return 1;
    const double warps = sharing * static_cast<double>(wave_count(c));
    constexpr double kDoubleGap = 0.7;  // a warp alone waits for each of its products
    const double gap = family_of(c) == FamilyId::fp64_gemm
                           ? kDoubleGap
                           : std::min(kWidestGap, kGap / static_cast<double>(accumulators_per_thread(c, arch)));
    return std::min(1.0, std::pow(warps / kEnoughWarps, gap));
}

// What a unit reads at a time: a load takes its latency, however much is on its way, and then its turn at the port.
double unit_gbps(double port_gbps, double bytes_on_the_way) {
    constexpr double kLatencyUs = 1.0;
    return 1 / (1 / port_gbps + kLatencyUs * 1e3 / bytes_on_the_way);
}

// A round of blocks that run at the same time.
double round_us(double blocks, const TileCost& tile, const KernelConfig& c, const ArchSpec& arch, double units) {
    if (blocks <= 0) return 0;
    const double sharing = std::ceil(blocks / units);  // blocks of a unit
    const double unit_tflops = peak_tflops(arch, c.dtype) * kPeakReached / arch.units;
    const double compute_us =
        sharing * tile.flops / (unit_tflops * inner_efficiency(c, arch) * filled(c, arch, sharing) * 1e6);
    constexpr double kCachePortGbps = 173, kMemoryPortGbps = 59;
    const bool ahead = c.pipeline == Pipeline::compv3 || c.pipeline == Pipeline::compv4;  // also in registers
    const double on_the_way = sharing * static_cast<double>(buffer_count(c) + (ahead ? 1 : 0)) * (c.tile.m + c.tile.n) *
                              c.tile.k * static_cast<double>(bytes_of(c.dtype));
    const double cache_load_us = sharing * tile.bytes / (unit_gbps(kCachePortGbps, on_the_way) * 1e3);
    const double memory_load_us = sharing * tile.memory_bytes / (unit_gbps(kMemoryPortGbps, on_the_way) * 1e3);
    const double cache_us = blocks * tile.bytes / (arch.cache_gbps * 1e3);
    const double memory_us = blocks * tile.memory_bytes / (arch.memory_gbps * kMemoryReached * 1e3);
    // A warp that copies by itself asks for one access after the other.
    constexpr double kWarpCopyGbps = 37;
    const double copy_us =
        has_wide_waves(c, arch) ? 0 : tile.bytes / (kWarpCopyGbps * static_cast<double>(wave_count(c)) * 1e3);
    const double unit_us = std::max({compute_us, cache_load_us, memory_load_us, copy_us});
    return overlapped({unit_us, cache_us, memory_us}) + sharing * tile.store_us;
}

// What adding up the sums of blocks that share a tile takes.
double sums_us(const GemmView& v, const KernelConfig& c, const ArchSpec& arch) {
    const double tile_bytes = 4.0 * c.tile.m * c.tile.n;
    if (c.stream_k != StreamK::off) {
        constexpr double kWaitUs = 2.3, kThroughCacheGbps = 1720;  // every unit has a tile that it shares
        return kWaitUs + tile_bytes * arch.units / (kThroughCacheGbps * 1e3);
    }
    if (c.cluster_k) {
        constexpr double kMeetUs = 1.0, kFromBlocksGbps = 28;
        return kMeetUs + tile_bytes / (kFromBlocksGbps * 1e3);
    }
    constexpr double kWavesUs = 1.5;  // of a block that share out k
    if (c.split_k <= 1) return is_plain_arithmetic(c) && c.wave.k > 1 ? kWavesUs : 0;
    constexpr double kSecondLaunchUs = 8;
    const double bytes = 4.0 * static_cast<double>(v.m) * static_cast<double>(v.n) * static_cast<double>(v.batch);
    return bytes * c.split_k * 2 / (arch.cache_gbps * 1e3) + kSecondLaunchUs;
}

double stream_sharers_of(const KernelConfig& c, double blocks, double steps) {
    return c.stream_k == StreamK::off ? 1 : stream_sharers(static_cast<unsigned>(blocks), static_cast<unsigned>(steps));
}

// What it takes until the sums of blocks that share a tile have met: one that writes and one that waits, then every slot.
double shared_sums_us(const KernelConfig& c, double sharers) {
    if (sharers <= 1) return 0;
    constexpr double kMeetUs = 3, kSlotGbps = 150;
    return kMeetUs + (sharers - 1) * 4.0 * c.tile.m * c.tile.n / (kSlotGbps * 1e3);
}

// What a unit takes to convert and multiply its share of the elements.
double vectors_compute_us(const GemmView& v, const KernelConfig& c, const ArchSpec& arch) {
    constexpr double kOperationsPerUs = 128 * 1100, kConversions = 3, kEach = 2;
    const auto vectors = static_cast<double>(c.swap_ab ? v.m : v.n);
    const double elements = static_cast<double>((c.swap_ab ? v.n : v.m) * v.batch * v.k) / arch.units;
    return elements * (kConversions + kEach * vectors) / kOperationsPerUs;
}

// One pass over the large operand by blocks that share its lines evenly; the arithmetic counts from a few vectors on.
double predicted_vectors_us(const GemmView& v, double memory_bytes, const KernelConfig& c, const ArchSpec& arch) {
    const auto lines = static_cast<double>((c.swap_ab ? v.n : v.m) * v.batch);
    const double places = static_cast<double>(arch.units) * c.blocks_per_unit;
    const double blocks = std::min(std::ceil(lines / c.tile.m), places);
    // Blocks that are fewer than places gather on some units.
    const double gathered = std::sqrt(std::clamp(places / blocks, 1.0, static_cast<double>(c.blocks_per_unit)));
    // A pass of few lines has as little on its way.
    constexpr double kLittle = 0.1, kPassUs = 0.15;
    const double block_lines = std::ceil(lines / blocks), passes = std::ceil(block_lines / c.tile.m);
    const double little = 1 + kLittle * (1 - block_lines / (passes * c.tile.m));
    const double memory_us = memory_bytes / (arch.memory_gbps * kMemoryReached * 1e3) * gathered * little;
    return overlapped({vectors_compute_us(v, c, arch), memory_us}) + passes * kPassUs + kFillUs + arch.launch_us;
}

// The same where the large operand lies along its lines: a block has the lines of a tile, and of k what its part is.
double predicted_vector_rows_us(const GemmView& v, double memory_bytes, const KernelConfig& c, const ArchSpec& arch) {
    const auto lines = static_cast<double>((c.swap_ab ? v.n : v.m) * v.batch);
    const double blocks = std::ceil(lines / c.tile.m) * c.split_k;
    const double sharing = std::ceil(blocks / arch.units), rounds = std::ceil(sharing / c.blocks_per_unit);
    // A lane has what it multiplies next on its way, and some of this step's.
    constexpr double kAccessBytes = 16, kRowsOnTheWay = 12, kMemoryPortGbps = 59, kMeetUs = 1.0;
    const double block_bytes = static_cast<double>(threads_per_block(c, arch)) * kRowsOnTheWay * kAccessBytes;
    const double unit_bytes = memory_bytes / blocks * sharing;
    const double unit_us =
        unit_bytes / (unit_gbps(kMemoryPortGbps, block_bytes * std::min<double>(sharing, c.blocks_per_unit)) * 1e3);
    const double memory_us = memory_bytes / (arch.memory_gbps * kMemoryReached * 1e3);
    return overlapped({unit_us, memory_us, vectors_compute_us(v, c, arch)}) + rounds * kFillUs + arch.launch_us +
           (c.cluster_k ? kMeetUs : 0);
}

}  // namespace

double predicted_product_us(const GemmView& v, double memory_bytes, const KernelConfig& c, const ArchSpec& arch) {
    const std::int64_t rows = c.swap_ab ? v.n : v.m, columns = c.swap_ab ? v.m : v.n;
    const double tiles_m = blocks_of(rows, c.tile.m), tiles_n = blocks_of(columns, c.tile.n);
    const double whole =
        std::ceil(tiles_m / c.cluster.m) * c.cluster.m * std::ceil(tiles_n / c.cluster.n) * c.cluster.n;
    const double tiles = whole * static_cast<double>(v.batch) * c.split_k;
    const double neighbours = blocks_per_unit(c, arch);
    const double units = usable_units(c, arch), places = units * neighbours;

    const double depth = blocks_of(static_cast<std::int64_t>(blocks_of(v.k, c.tile.k)), c.split_k) * c.tile.k;
    const bool one_row = !c.swap_ab && tiles_m == 1 && v.batch == 1;
    const TileCost tile = tile_cost(c, arch, depth, memory_bytes / tiles, one_row);
    const double full = std::floor(tiles / places), rest = tiles - full * places;
    // Blocks of stream-K share what is left over.
    const double sharers = rest > 0 ? stream_sharers_of(c, places / rest, depth / c.tile.k) : 1;
    const double rounds = full + (rest > 0 ? 1 / sharers : 0);
    // Many small blocks that follow each other on a unit never wait all together.
    constexpr double kManyBlocks = 0.95;
    const double tiles_us =
        (full * round_us(places, tile, c, arch, units) + round_us(rest * sharers, tile, c, arch, units) / sharers) *
        (c.pipeline == Pipeline::mem && !has_wide_waves(c, arch) ? kManyBlocks : 1);
    constexpr double kBetweenUs = 0.44, kBetweenBlocksUs = 2.5;
    // A persistent block overlaps the ends of its tiles with the next ones; others do with those of their neighbours.
    const double between_us = (c.persistent ? kBetweenUs : kBetweenBlocksUs / neighbours) * std::max(0.0, rounds - 1);
    return tiles_us + between_us + kFillUs + arch.launch_us + sums_us(v, c, arch) + shared_sums_us(c, sharers);
}

double predicted_gpu_us(const ProblemView& view, const KernelConfig& c, const ArchSpec& arch) {
    if (is_conv(c.op)) return predicted_gpu_conv_us(view, c, arch);
    if (is_gemv(family_of(c))) {
        // Both operands along k, or the large one along its lines.
        const bool along_k = contiguous_axis(c, c.swap_ab ? 1 : 0) == Axis::k;
        return (along_k ? predicted_vectors_us : predicted_vector_rows_us)(view.gemm, bytes_moved(view.problem), c,
                                                                           arch);
    }
    double total = predicted_product_us(view.gemm, bytes_moved(view.problem), c, arch);
    if (packs_operands(c, arch)) {
        // Read and written once before anything else.
        constexpr double kPackLaunchUs = 2.5;
        double bytes = 0;
        for (int i = 0; i < 2; ++i) {
            if (packs_operand(c, arch, i)) bytes += 2.0 * static_cast<double>(packed_matrices(view.problem, i).bytes());
        }
        total += bytes / (arch.memory_gbps * kMemoryReached * 1e3) + kPackLaunchUs;
    }
    return total;
}

}  // namespace tilewise
