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

// The share of multiply-adds that are not padding.
double useful_share(const GemmView& v, const Shape3& unit) {
    const auto share = [](std::int64_t size, int step) {
        return static_cast<double>(size) / (blocks(size, step) * static_cast<double>(step));
    };
    return share(v.m, unit.m) * share(v.n, unit.n) * share(v.k, unit.k);
}

// A micro-kernel of m rows and n columns loads n vector lanes and broadcasts m values for every m x n products: square ones
// keep the arithmetic units fed, thin ones wait for loads.
double micro_kernel_efficiency(const KernelConfig& c, const ArchSpec& arch) {
    const double lanes = std::max(1.0, static_cast<double>(arch.load_bytes) / 4.0);
    const double vectors = std::max(1.0, static_cast<double>(c.warp_tile.n) / lanes);
    const double multiplies = static_cast<double>(c.warp_tile.m) * vectors;
    const double loads = static_cast<double>(c.warp_tile.m) + vectors;
    constexpr double kHidden = 8;  // independent sums that hide the latency of one
    return std::min({1.0, multiplies / loads, multiplies / kHidden});
}

struct Packing {
    bool a = false, b = false;
};
Packing packing_of(Pipeline pipeline) {
    switch (pipeline) {
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
                              (peak_tflops(arch, c.dtype) * 1e6 * workers * balance);

    // A is packed again for every block of columns, B once; sums between blocks of k travel through the cache.
    const Packing packing = packing_of(c.pipeline);
    const double bytes_a = m * k * batch * static_cast<double>(bytes_of(c.dtype));
    const double bytes_b = k * n * batch * static_cast<double>(bytes_of(c.dtype_b));
    const double packed = (packing.a ? bytes_a * blocks(v.n, c.tile.n) : 0) + (packing.b ? bytes_b : 0);
    const double pack_us = packed / (arch.pack_gbps * 1e3 * workers);
    const double passes = blocks(v.k, c.tile.k) - 1;
    const double sums_us = 2 * 4 * m * n * batch * passes / (arch.cache_gbps * 1e3 * workers);

    // In place, A is read with a stride: what does not fit the cache is fetched line by line for every block of columns.
    constexpr double kStridedCost = 1.5;
    const double unpacked_us =
        packing.a ? 0 : kStridedCost * bytes_a * blocks(v.n, c.tile.n) / (arch.cache_gbps * 1e3 * workers);
    const double unpacked_b_us =
        packing.b || c.pipeline == Pipeline::preshuffle
            ? 0
            : kStridedCost * bytes_b * blocks(v.m, c.tile.m) / (arch.cache_gbps * 1e3 * workers);
    const double split_us = c.split_k > 1 ? 2 * 4 * m * n * batch * c.split_k / (arch.cache_gbps * 1e3 * workers) : 0;
    const double memory_us = bytes_moved(view.problem) / (arch.memory_gbps * 1e3);
    return std::max(compute_us, memory_us) + pack_us + sums_us + unpacked_us + unpacked_b_us + split_us +
           arch.launch_us * (threads > 1 ? 2 : 1);
}

}  // namespace tilewise
