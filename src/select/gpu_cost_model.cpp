// SPDX-License-Identifier: MIT
#include "select/gpu_cost_model.hpp"

#include <algorithm>
#include <cmath>

#include "config/geometry.hpp"
#include "config/packing.hpp"
#include "select/gpu_conv_cost.hpp"
#include "select/machine_rates.hpp"

namespace tilewise {
namespace {

// What overlaps takes about as long as the longer of the two, and a little more the closer they are.
double overlapped(double a, double b, double sharpness) {
    const double longer = std::max(a, b);
    return longer <= 0
               ? 0
               : longer * std::pow(std::pow(a / longer, sharpness) + std::pow(b / longer, sharpness), 1 / sharpness);
}
constexpr double kWithinBlock = 9, kWithMemory = 3.4;

// All constants were fitted to the times of the default set's kernels (109 on each of 16 problems) on an H200.
constexpr double kPeakReached = 1.07;   // of the arch file's peak, by the best inner loop at its best
constexpr double kMemoryReached = 0.8;  // of the memory's bandwidth, by kernels that only read
constexpr double kFillUs = 1.4;         // filling the ring before the first product, and the last results after it

bool is_plain_arithmetic(const KernelConfig& c) { return c.dtype == DType::fp32 && c.warp_tile.k == 1; }

// The share of a unit's peak that a kernel's inner loop reaches. Warpgroup products run at full speed from 128 columns on;
// mma.sync reaches a third of that on chips that have warpgroups; loads through registers halve it.
double inner_efficiency(const KernelConfig& c, const ArchSpec& arch) {
    if (has_wide_waves(c, arch)) {
        constexpr double kWhole = 0.96, kNarrow = 0.72, kAlone = 1.25;  // a warpgroup that has the unit for itself
        const double columns = kNarrow + (1 - kNarrow) * std::min(1.0, c.warp_tile.n / 128.0);
        return kWhole * columns * (wave_count(c) == 1 ? kAlone : 1.0);
    }
    if (is_plain_arithmetic(c)) {
        // Sums of a thread: the more, the fewer reads of shared memory for each product.
        constexpr double kMostSums = 128, kReached = 0.69;
        return kReached * std::min(1.0, std::sqrt(static_cast<double>(accumulators_per_thread(c, arch)) / kMostSums));
    }
    const double shape = std::min(1.0, std::sqrt(static_cast<double>(c.tile.m) * c.tile.n) / 128.0);
    const bool has_warpgroups = arch.wide_wave_rows > 0 && bytes_of(c.dtype) < 4;
    const bool async = c.pipeline == Pipeline::comp_async || c.pipeline == Pipeline::mem;
    return (has_warpgroups ? 0.355 : 0.85) * (0.72 + 0.28 * shape) * (async ? 1.0 : 0.5);
}

// What a block can have on its way from memory: bytes in flight over the time a load takes, up to its share of the width of
// the unit's port. Blocks of warpgroups fill the shared memory of a unit between them.
double block_gbps(const KernelConfig& c, const ArchSpec& arch, double sharing) {
    constexpr double kLatencyUs = 1.03, kPortGbps = 208;
    const double alone = static_cast<double>(shared_bytes(c, arch)) / kLatencyUs * 1e-3;
    return has_wide_waves(c, arch) ? std::min(kPortGbps, alone) / sharing : std::min(kPortGbps / sharing, alone);
}

// Blocks that share a unit: a persistent kernel has one, others as many as its shared memory and registers hold, of which a
// few count.
double blocks_per_unit(const KernelConfig& c, const ArchSpec& arch) {
    if (c.persistent) return 1;
    const auto by_memory = static_cast<double>(arch.shared_bytes / shared_bytes(c, arch));
    if (has_wide_waves(c, arch)) return std::clamp<double>(by_memory, 1, 2);
    constexpr double kOtherRegisters = 88, kMostRegisters = 255, kMost = 4;
    const double each =
        std::min(kMostRegisters, static_cast<double>(accumulators_per_thread(c, arch)) + kOtherRegisters);
    const double by_registers = std::floor(arch.registers / (each * static_cast<double>(threads_per_block(c, arch))));
    return std::clamp<double>(std::min(by_memory, by_registers), 1, kMost);
}

// Plain arithmetic leaves gaps where a unit has few warps to fill them.
double filled(const KernelConfig& c, double sharing) {
    constexpr double kEnoughWarps = 8;
    return is_plain_arithmetic(c)
               ? std::min(1.0, std::sqrt(sharing * static_cast<double>(wave_count(c)) / kEnoughWarps))
               : 1.0;
}

}  // namespace

double predicted_product_us(const GemmView& v, double memory_bytes, const KernelConfig& c, const ArchSpec& arch) {
    const std::int64_t rows = c.swap_ab ? v.n : v.m, columns = c.swap_ab ? v.m : v.n;
    const double tiles_m = blocks_of(rows, c.tile.m), tiles_n = blocks_of(columns, c.tile.n);
    const double whole =
        std::ceil(tiles_m / c.cluster.m) * c.cluster.m * std::ceil(tiles_n / c.cluster.n) * c.cluster.n;
    const double batch = static_cast<double>(v.batch);
    const double tiles = whole * batch * c.split_k;
    const double units = arch.units, neighbours = blocks_per_unit(c, arch), places = units * neighbours;
    const double rounds = std::ceil(tiles / places), busy = std::min(places, tiles);
    const double sharing = std::min(neighbours, std::max(1.0, tiles / units));  // blocks that a unit really has

    const double depth = blocks_of(blocks_of(v.k, c.tile.k), c.split_k) * c.tile.k;
    const double tile_flops = 2.0 * c.tile.m * c.tile.n * depth;
    const double unit_tflops = peak_tflops(arch, c.dtype) * kPeakReached / units;
    const double compute_us =
        sharing * tile_flops / (unit_tflops * inner_efficiency(c, arch) * filled(c, sharing) * 1e6);

    // Blocks of a cluster read the operand they share once.
    const double tile_lines = static_cast<double>(c.tile.m) / c.cluster.n + static_cast<double>(c.tile.n) / c.cluster.m;
    const double tile_bytes = tile_lines * depth * static_cast<double>(bytes_of(c.dtype));
    const double load_us = tile_bytes / (std::min(block_gbps(c, arch, sharing), arch.cache_gbps / busy) * 1e3);

    // Warpgroups write element by element where tensor copies cannot.
    constexpr double kElementsPerUs = 8e3;
    const bool by_copies = !c.swap_ab && c.vector_c * bytes_of(c.dtype_out) == arch.load_bytes;
    const double store_us = has_wide_waves(c, arch) && !by_copies ? c.tile.m * c.tile.n / kElementsPerUs : 0;

    // A persistent block overlaps the ends of its tiles with the next ones.
    const double between_us = (c.persistent ? 0.3 : 3.8) * (rounds - 1);
    const double tiles_us = rounds * (overlapped(compute_us, load_us, kWithinBlock) + store_us) + between_us;
    // Where the last round is not full, the units that have it read alone for a while.
    constexpr double kUnevenShare = 0.4;
    const double turns = tiles / units, uneven = turns > 1 ? kUnevenShare * (std::ceil(turns) / turns - 1) : 0;
    const double memory_us = memory_bytes / (arch.memory_gbps * kMemoryReached * 1e3) * (1 + uneven);
    double total = overlapped(tiles_us, memory_us, kWithMemory) + kFillUs + arch.launch_us;
    if (c.split_k > 1) {
        // Sums to the cache and back, and the launch that adds them up.
        constexpr double kSecondLaunchUs = 6.3;
        const double sums = 4.0 * static_cast<double>(v.m) * static_cast<double>(v.n) * batch;
        total += sums * c.split_k * 2 / (arch.cache_gbps * 1e3) + kSecondLaunchUs;
    }
    return total;
}

double predicted_gpu_us(const ProblemView& view, const KernelConfig& c, const ArchSpec& arch) {
    if (is_conv(c.op)) return predicted_gpu_conv_us(view, c, arch);
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
