// SPDX-License-Identifier: MIT
#include "select/cost_model.hpp"

#include <algorithm>
#include <cmath>

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

// The arch file's peak is that of the deepest warp tile of a type. Shallower ones multiply in fp32, or a few values at a time.
double peak_tflops(const ArchSpec& arch, const KernelConfig& c) {
    const double peak = peak_tflops(arch, c.dtype);
    int deepest = c.warp_tile.k;
    if (const WarpTiles* listed = arch.find_warp_tiles({c.dtype, c.dtype_b})) {
        for (const Shape3& tile : listed->tiles) deepest = std::max(deepest, tile.k);
    }
    return c.warp_tile.k == deepest ? peak : std::min(peak, c.warp_tile.k * peak_tflops(arch, DType::fp32));
}

// The share of multiply-adds that are not padding.
double useful_share(const GemmView& v, const Shape3& unit) {
    const auto share = [](std::int64_t size, int step) {
        return static_cast<double>(size) / (blocks(size, step) * static_cast<double>(step));
    };
    return share(v.m, unit.m) * share(v.n, unit.n) * share(v.k, unit.k);
}

// A micro-kernel of m rows and n columns reads n values of B and m of A for m x n products. Fewer rows read B more often,
// fewer columns broadcast more often; both fractions were fitted to one-thread times of all micro-kernels on 96 to 1024.
double micro_kernel_efficiency(const KernelConfig& c, const ArchSpec& arch) {
    constexpr double kPerRow = 0.6, kPerVector = 0.3;
    const double lanes = std::max(1.0, static_cast<double>(arch.load_bytes) / 4.0);
    return 1 / (1 + kPerRow / c.warp_tile.m + kPerVector * lanes / c.warp_tile.n);
}

struct Packing {
    bool a = false, b = false;
};
// One-row micro-kernels read both operands as they are.
bool is_gemv(const KernelConfig& c) { return c.warp_tile.m == 1 && c.pipeline != Pipeline::preshuffle; }

Packing packing_of(const KernelConfig& c) {
    if (is_gemv(c)) return {false, false};
    switch (c.pipeline) {
        case Pipeline::basic_v1: return {false, false};
        case Pipeline::mem: return {false, true};
        case Pipeline::preshuffle: return {true, false};
        default: return {true, true};
    }
}

}  // namespace

double predicted_us(const ProblemView& view, const KernelConfig& c, const ArchSpec& arch, int threads) {
    const GemmView& v = view.gemm;
    const double m = static_cast<double>(v.m), n = static_cast<double>(v.n), k = static_cast<double>(v.k);
    const double batch = static_cast<double>(v.batch);
    const double parts = blocks(v.m, c.warp_tile.m) * blocks(v.n, c.warp_tile.n) * batch * c.split_k;
    const double workers = std::min<double>(threads, parts);
    const double balance = parts / (std::ceil(parts / workers) * workers);

    const double compute_us = 2 * m * n * k * batch / useful_share(v, c.warp_tile) / micro_kernel_efficiency(c, arch) /
                              (peak_tflops(arch, c) * 1e6 * workers * balance);

    // A is packed again for every block of columns, B once; sums between blocks of k travel through the cache.
    const Packing packing = packing_of(c);
    const double bytes_a = m * k * batch * static_cast<double>(bytes_of(c.dtype));
    const double bytes_b = k * n * batch * static_cast<double>(bytes_of(c.dtype_b));
    const double packed = (packing.a ? bytes_a * blocks(v.n, c.tile.n) : 0) + (packing.b ? bytes_b : 0);
    const double pack_us = packed / (arch.pack_gbps * 1e3 * workers);
    const double passes = blocks(v.k, c.tile.k) - 1;
    const double sums_us = 2 * 4 * m * n * batch * passes / (arch.cache_gbps * 1e3 * workers);

    // In place, an operand is read again for every block of the other, from the cache; rows of B that lie pages apart miss
    // the address cache too, and a one-row micro-kernel reads all of B for every row.
    constexpr double kInPlaceCost = 1.5, kFarRowsCost = 6;
    constexpr std::int64_t kPageBytes = 4096;
    const bool far_rows = view.problem.op == Op::gemm && is_row(view.problem.layout, 1) &&
                          leading_stride(view.problem, 1) * bytes_of(c.dtype_b) >= kPageBytes;
    const double cache_us = 1 / (arch.cache_gbps * 1e3 * workers);
    const double again_b = is_gemv(c) ? m - 1 : (far_rows ? kFarRowsCost : kInPlaceCost) * blocks(v.m, c.tile.m);
    const bool reads_b = !packing.b && c.pipeline != Pipeline::preshuffle;
    const double unpacked_us = packing.a || is_gemv(c) ? 0 : kInPlaceCost * bytes_a * blocks(v.n, c.tile.n) * cache_us;
    const double unpacked_b_us = reads_b ? bytes_b * again_b * cache_us : 0;
    const double split_us = c.split_k > 1 ? 2 * 4 * m * n * batch * c.split_k / (arch.cache_gbps * 1e3 * workers) : 0;
    const double memory_us = bytes_moved(view.problem) / (arch.memory_gbps * 1e3);
    return std::max(compute_us, memory_us) + pack_us + sums_us + unpacked_us + unpacked_b_us + split_us +
           arch.launch_us * (threads > 1 ? 2 : 1);
}

}  // namespace tilewise
