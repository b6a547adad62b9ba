// SPDX-License-Identifier: MIT
#include "family/hip/mfma_gemm_work.hpp"

#include <algorithm>
#include <cmath>

#include "config/geometry.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

// Blocks that share a unit, each hiding the waits of the others: as many as shared memory and the registers of four SIMDs allow.
double neighbours_of(const KernelConfig& c, const ArchSpec& arch) {
    constexpr double kRegisters = 512, kOtherRegisters = 64, kSimds = 4, kMost = 8;
    const auto bytes = static_cast<double>(block_shared_bytes(c, arch));
    const auto sums = static_cast<double>(accumulators_per_thread(c, arch));
    const double waves = std::max(1.0, std::floor(kRegisters / (sums + kOtherRegisters))) * kSimds;
    const double by_registers = std::floor(waves / static_cast<double>(wave_count(c)));
    const double by_memory = std::floor(static_cast<double>(arch.shared_bytes) / std::max(1.0, bytes));
    return std::clamp(std::min(by_registers, by_memory), 1.0, kMost);
}

// Cycles of a unit for one step of k of one tile.
template <class N>
N step_cycles(const KernelConfig& c, const ArchSpec& arch, double neighbours) {
    const auto& price = arch.prices.mfma_gemm;
    const auto element = static_cast<double>(bytes_of(c.dtype));
    const double line = c.tile.k * element;
    const double loaded = (c.tile.m + c.tile.n) * line;
    // Every wave reads its rows and its columns; all are written once.
    const double waves = static_cast<double>(c.wave.m) * c.wave.n;
    const int lines = c.tile.m / c.wave.m + c.tile.n / c.wave.n;
    const double read = waves * lines * line;
    const double flops = 2.0 * c.tile.m * c.tile.n * c.tile.k;
    const N unit_flops = peak_tflops<N>(arch, c.dtype) * N(price.peak_reached_share) * 1e6 /
                         (N(price.cycles_per_us) * static_cast<double>(arch.units));
    const N products = named("products", counted<N>("flops", flops) / unit_flops);
    const N shared =
        named("shared memory", counted<N>("shared bytes", read + loaded) / N(price.shared_bytes_per_cycle));
    const N loads = named("loads", counted<N>("loaded bytes", loaded) / N(price.load_bytes_per_cycle));
    // With nothing on its way meanwhile, a step waits for its loads.
    const bool ahead = c.pipeline != Pipeline::basic_v1;
    const N waits = (ahead ? N(price.hidden_step_cycles) : N(price.step_cycles)) / neighbours;
    return longest({products, shared, loads}) + named("waits", waits);
}

}  // namespace

template <class N>
N mfma_product_us(const GemmView& v, double tiles, const WorkProblem& problem, const KernelConfig& c) {
    const ArchSpec& arch = problem.arch;
    const auto& price = arch.prices.mfma_gemm;
    const double all_steps = tiles * blocks_of(v.k, c.tile.k);
    const double neighbours = neighbours_of(c, arch);
    // Stream-K deals steps out evenly, others whole parts of tiles.
    const double parts = tiles * c.split_k;
    const double tiles_of_unit = std::ceil(parts / arch.units);
    const double steps_of_unit = c.stream_k != StreamK::off
                                     ? std::ceil(all_steps / arch.units)
                                     : tiles_of_unit * std::ceil(blocks_of(v.k, c.tile.k) / c.split_k);
    const N steps = named("steps", (step_cycles<N>(c, arch, neighbours) / N(price.cycles_per_us)) *
                                       counted<N>("steps of a unit", steps_of_unit));
    N ends = named("ends", N(price.tile_us) * std::ceil(tiles_of_unit / neighbours));
    if (c.wave.k > 1) {  // sums of waves are written and read
        const double met = 8.0 * (c.wave.k - 1) * c.tile.m * c.tile.n * tiles_of_unit;
        ends = ends + named("waves meet",
                            counted<N>("met bytes", met) / (N(price.shared_bytes_per_cycle) * N(price.cycles_per_us)));
    }
    const auto bytes = static_cast<double>(bytes_of(c.dtype));
    const double cached = all_steps * (c.tile.m + c.tile.n) * c.tile.k * bytes;
    const N cache = bytes_us<N>("cache", cached, rate<N>(arch.cache_gbps));
    const N memory = bytes_us<N>("memory", problem.bytes, rate<N>(arch.memory_gbps) * N(price.memory_reached_share));
    N sums = 0.0;
    if (c.split_k > 1 || c.stream_k != StreamK::off) {
        const double sum_bytes =
            8.0 * static_cast<double>(v.m) * static_cast<double>(v.n) * static_cast<double>(v.batch) * c.split_k;
        sums = named("sums", bytes_us<N>("sum bytes", sum_bytes, rate<N>(arch.cache_gbps)) + N(price.second_kernel_us));
    }
    return longest({named("units", steps + ends), cache, memory}) + rate<N>(arch.launch_us) + sums;
}
template double mfma_product_us<double>(const GemmView&, double, const WorkProblem&, const KernelConfig&);
template Term mfma_product_us<Term>(const GemmView&, double, const WorkProblem&, const KernelConfig&);
template Noted mfma_product_us<Noted>(const GemmView&, double, const WorkProblem&, const KernelConfig&);

template <class N>
N mfma_gemm_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan*) {
    const GemmView& v = problem.view.gemm;
    const double tiles = blocks_of(v.m, c.tile.m) * blocks_of(v.n, c.tile.n) * static_cast<double>(v.batch);
    return mfma_product_us<N>(v, tiles, problem, c);
}
template double mfma_gemm_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term mfma_gemm_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted mfma_gemm_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

}  // namespace tilewise
