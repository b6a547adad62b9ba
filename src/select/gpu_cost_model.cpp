// SPDX-License-Identifier: MIT
#include "select/gpu_cost_model.hpp"

#include <algorithm>
#include <cmath>

#include "config/geometry.hpp"

namespace tilewise {
namespace {

double blocks(std::int64_t size, std::int64_t unit) {
    return std::ceil(static_cast<double>(size) / static_cast<double>(unit));
}

double peak_tflops(const ArchSpec& arch, DType dtype) {
    for (const Peak& peak : arch.peaks) {
        if (peak.dtype == dtype) return peak.tflops;
    }
    return arch.peaks.empty() ? 1.0 : arch.peaks.front().tflops;
}

// The share of a unit's peak that a kernel's inner loop reaches. Warpgroup products run at full speed from 128 columns on
// and read A again for every 64; mma.sync reaches about 60 % on chips that have warpgroups; loads through registers less.
// Fitted to times of all kernels of the default set on an H200.
double inner_efficiency(const KernelConfig& c, const ArchSpec& arch) {
    if (has_wide_waves(c, arch)) {
        const double columns = std::min(1.0, 0.35 + 0.65 * c.warp_tile.n / 128.0);
        const double rows = c.tile.m >= 128 ? 1.0 : 0.85;
        return columns * rows;
    }
    const double shape = std::min(1.0, std::sqrt(static_cast<double>(c.tile.m) * c.tile.n) / 128.0);
    const bool has_warpgroups = arch.wide_wave_rows > 0 && bytes_of(c.dtype) < 4;
    const bool async = c.pipeline == Pipeline::comp_async || c.pipeline == Pipeline::mem;
    const double loads = async ? 1.0 : c.vector_a > 1 && c.vector_b > 1 ? 0.7 : 0.25;
    return (has_warpgroups ? 0.6 : 0.85) * (0.3 + 0.7 * shape) * loads;
}

// What one unit can have on its way from memory: bytes in flight over the time a load takes, up to the width of its port.
double unit_gbps(const KernelConfig& c, const ArchSpec& arch) {
    constexpr double kLatencyUs = 1.0, kPortGbps = 90;
    const double in_flight = static_cast<double>(shared_bytes(c, arch));
    return std::min(kPortGbps, in_flight / kLatencyUs * 1e-3);
}

}  // namespace

double predicted_gpu_us(const ProblemView& view, const KernelConfig& c, const ArchSpec& arch) {
    const GemmView& v = view.gemm;
    const std::int64_t rows = c.swap_ab ? v.n : v.m, columns = c.swap_ab ? v.m : v.n;
    const double tiles_m = blocks(rows, c.tile.m), tiles_n = blocks(columns, c.tile.n);
    const double whole =
        std::ceil(tiles_m / c.cluster.m) * c.cluster.m * std::ceil(tiles_n / c.cluster.n) * c.cluster.n;
    const double batch = static_cast<double>(v.batch);
    const double tiles = whole * batch * c.split_k;
    const double units = arch.units;
    const double rounds = std::ceil(tiles / (units * c.blocks_per_unit));

    const double depth = blocks(blocks(v.k, c.tile.k), c.split_k) * c.tile.k;
    const double tile_flops = 2.0 * c.tile.m * c.tile.n * depth;
    const double unit_tflops = peak_tflops(arch, c.dtype) / units;
    const double compute_us = tile_flops / (unit_tflops * inner_efficiency(c, arch) * 1e6);

    // Blocks of a cluster read the operand they share once.
    const double line = static_cast<double>(bytes_of(c.dtype));
    const double tile_bytes =
        (static_cast<double>(c.tile.m) / c.cluster.n + static_cast<double>(c.tile.n) / c.cluster.m) * depth * line;
    const double busy = std::min(units, tiles);
    const double shared_gbps = arch.cache_gbps / busy;
    const double load_us = tile_bytes / (std::min(unit_gbps(c, arch), shared_gbps) * 1e3);

    // Filling the ring before the first product, and the last results after it, are not overlapped; a persistent block
    // overlaps those between its tiles.
    constexpr double kFillUs = 1.0, kStoreUs = 0.8;
    const double ends = kFillUs + kStoreUs + (c.persistent ? 0.1 : 1.0) * (rounds - 1);
    const double tiles_us = rounds * std::max(compute_us, load_us) + ends;
    const double memory_us = bytes_moved(view.problem) / (arch.memory_gbps * 1e3);
    double total = std::max(tiles_us, memory_us + kFillUs);
    if (c.split_k > 1) {
        // Sums to the cache and back, and the launch that adds them up.
        const double sums = 4.0 * static_cast<double>(v.m) * static_cast<double>(v.n) * batch;
        total += sums * c.split_k * 2 / (arch.cache_gbps * 1e3) + arch.launch_us;
    }
    return total + arch.launch_us;
}

}  // namespace tilewise
