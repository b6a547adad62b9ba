// SPDX-License-Identifier: MIT
#include "family/cuda/block_product_least.hpp"

#include <algorithm>

#include "base/soft_max_bound.hpp"
#include "config/packing.hpp"
#include "family/cuda/block_product_work.hpp"
#include "family/cuda/block_speed.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

// The larger of numbers that are not negative, without a call.
double floored(double x) { return static_cast<double>(static_cast<std::int64_t>(x)); }
double ceiled(double x) {
    const double whole = floored(x);
    return whole < x ? whole + 1 : whole;
}
double units_of(std::int64_t size, int unit) { return ceiled(static_cast<double>(size) / unit); }

// The most of its speed that a unit's arithmetic reaches, with however many blocks.
double most_filled(const KernelConfig& c, const ArchSpec& arch, double neighbours) {
    return std::max({1.0, block_speed::filled<double>(c, arch, 1), block_speed::filled<double>(c, arch, neighbours)});
}

// The time that adding up takes beside the sums themselves.
double meeting_us(const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.block_product;
    if (c.stream_k != StreamK::off) return double(price.stream_wait_us);
    if (c.cluster_k) return double(price.cluster_meet_us);
    return c.split_k > 1 ? double(price.second_launch_us) : 0;
}

}  // namespace

BlockColumns block_columns(const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.block_product;
    const auto bytes = static_cast<double>(bytes_of(c.dtype));
    const bool wide = has_wide_waves(c, arch);
    BlockColumns of{};
    of.neighbours = block_speed::blocks_per_unit(c, arch), of.units = usable_units(c, arch);
    const double tflops = peak_tflops<double>(arch, c.dtype) * double(price.peak_reached_share) / arch.units;
    of.flop_us =
        1 / (tflops * block_speed::inner_efficiency<double>(c, arch) * most_filled(c, arch, of.neighbours) * 1e6);
    const double rows = static_cast<double>(c.tile.m) / c.cluster.n,
                 columns = static_cast<double>(c.tile.n) / c.cluster.m;
    const double straddling = std::min(1.0, double(price.straddling_share));
    of.row_bytes = rows * bytes * straddling, of.column_bytes = columns * bytes * straddling;
    of.same_rows_share = wide ? std::min(1.0, double(price.same_rows_share)) : 1;
    const bool ahead = c.pipeline == Pipeline::compv3 || c.pipeline == Pipeline::compv4;
    const double on_the_way =
        static_cast<double>(buffer_count(c) + (ahead ? 1 : 0)) * (c.tile.m + c.tile.n) * c.tile.k * bytes;
    of.latency_us = double(price.latency_us) / on_the_way;
    if (!wide) {
        of.copy_us = (rows * block_speed::narrow_copies<double>(c, arch, 0) +
                      columns * block_speed::narrow_copies<double>(c, arch, 1)) *
                     bytes / (double(price.warp_copy_gbps) * static_cast<double>(wave_count(c)) * 1e3);
    }
    of.store_us = block_speed::store_us<double>(c, arch);
    of.all_share = c.pipeline == Pipeline::mem && !wide ? double(price.many_blocks_share) : 1;
    of.fixed_us = double(price.fill_us) + arch.launch_us + meeting_us(c, arch);
    if (c.cluster.m * c.cluster.n > 2) {
        of.all_share *= double(price.large_cluster_share), of.fixed_us += double(price.large_cluster_us);
    }
    of.between_us = c.persistent ? double(price.between_tiles_us) : double(price.between_blocks_us) / of.neighbours;
    if (c.split_k > 1 && !c.cluster_k && c.stream_k == StreamK::off)
        of.sum_us = 8.0 * c.split_k / (arch.cache_gbps * 1e3);
    of.split_k = c.split_k, of.streams = c.stream_k != StreamK::off;
    return of;
}

double block_product_least(const GemmView& v, const WorkProblem& problem, const KernelConfig& c,
                           const BlockColumns& of) {
    const ArchSpec& arch = problem.arch;
    const auto& price = arch.prices.block_product;
    const std::int64_t rows = c.swap_ab ? v.n : v.m, columns = c.swap_ab ? v.m : v.n;
    double tiles_m = units_of(rows, c.tile.m), tiles_n = units_of(columns, c.tile.n);
    const bool one_row = !c.swap_ab && tiles_m == 1 && v.batch == 1;
    if (c.cluster.m > 1) tiles_m = ceiled(tiles_m / c.cluster.m) * c.cluster.m;
    if (c.cluster.n > 1) tiles_n = ceiled(tiles_n / c.cluster.n) * c.cluster.n;
    const double tiles = tiles_m * tiles_n * static_cast<double>(v.batch) * of.split_k;
    double steps = units_of(v.k, c.tile.k);
    if (of.split_k > 1) steps = ceiled(steps / of.split_k);
    const double depth = steps * c.tile.k;
    // Rounds, and blocks of a unit in all of them: those of stream-K may have parts of a round.
    const double places = of.units * of.neighbours, full = floored(tiles / places), rest = tiles - full * places;
    const double rounds = full + (rest > 0 && !of.streams ? 1 : 0);
    const double blocks = full * of.neighbours + (of.streams ? rest / of.units : ceiled(rest / of.units));
    const double flops = 2.0 * c.tile.m * c.tile.n * depth;
    const double tile_bytes = (of.row_bytes * (one_row ? of.same_rows_share : 1) + of.column_bytes) * depth,
                 memory_bytes = problem.bytes / tiles;
    const double waiting = of.latency_us * rounds;
    const double unit = std::max(
        {blocks * flops * of.flop_us, tile_bytes * (blocks / (double(price.cache_port_gbps) * 1e3) + waiting),
         memory_bytes * (blocks / (double(price.memory_port_gbps) * 1e3) + waiting), rounds * of.copy_us * depth});
    const double cache = tile_bytes * tiles / (arch.cache_gbps * 1e3);
    const double memory = problem.bytes / (arch.memory_gbps * double(price.memory_reached_share) * 1e3);
    const double all = soft_max_bound(double(price.sharpness), {unit, cache, memory}) + of.store_us * blocks;
    const double results =
        of.sum_us > 0 ? static_cast<double>(v.m) * static_cast<double>(v.n) * static_cast<double>(v.batch) : 0;
    return all * of.all_share + of.between_us * std::max(0.0, rounds - 1) + of.fixed_us + of.sum_us * results;
}

WorkColumns block_gemm_columns(const KernelConfig& c, const ArchSpec& arch) {
    BlockColumns columns = block_columns(c, arch);
    if (packs_operands(c, arch)) columns.fixed_us += double(arch.prices.block_product.pack_launch_us);
    return WorkColumns(columns);
}

double block_gemm_least(const WorkProblem& problem, const KernelConfig& c, const WorkColumns& columns) {
    return block_product_least(problem.view.gemm, problem, c, columns.as<BlockColumns>());
}

}  // namespace tilewise
