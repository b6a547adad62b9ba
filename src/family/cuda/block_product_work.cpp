// SPDX-License-Identifier: MIT
#include "family/cuda/block_product_work.hpp"

#include <algorithm>
#include <cmath>

#include "config/family_id.hpp"
#include "config/geometry.hpp"
#include "config/packing.hpp"
#include "family/cuda/block_speed.hpp"
#include "family/cuda/chain_work.hpp"
#include "family/cuda/works.hpp"
#include "kernels/common/stream_slots.hpp"

namespace tilewise {

using block_speed::blocks_per_unit, block_speed::filled, block_speed::inner_efficiency;
using block_speed::is_plain_arithmetic, block_speed::narrow_copies, block_speed::store_us;

namespace {

// The work of one tile; all tiles of a kernel are alike.
template <class N>
struct TileWork {
    double flops, memory_bytes;  // of memory, as its share of all
    N bytes;                     // through the cache
    N copied_bytes;              // by threads, as if their accesses were whole
    N store_us;
    N chain_us;  // that nothing hides
};

// How much longer lines take through the cache that begin in the middle of its own: each is asked for twice.
template <class N>
N straddling(const WorkProblem& problem, const KernelConfig& c, int operand) {
    constexpr std::int64_t kCacheLineBytes = 128;
    const Problem& p = problem.view.problem;
    if (p.op != Op::gemm) return 1.0;
    const int of = c.swap_ab ? 1 - operand : operand;
    const std::int64_t pitch_bytes = packs_operand(c, problem.arch, of)
                                         ? packed_matrices(p, of).line_bytes()
                                         : leading_stride(p, of) * bytes_of(operand_dtype(c, of));
    return pitch_bytes % kCacheLineBytes == 0 ? N(1.0) : N(problem.arch.prices.block_product.straddling_share);
}

template <class N>
TileWork<N> tile_work(const WorkProblem& problem, const KernelConfig& c, double depth, double memory_bytes,
                      bool one_row) {
    const ArchSpec& arch = problem.arch;
    const auto& price = arch.prices.block_product;
    // Blocks of a cluster read the operand they share once. Rows that all blocks read at about the same time, and that stay in the
    // cache, come sooner than others.
    const bool wide = has_wide_waves(c, arch);
    const double line_bytes = depth * static_cast<double>(bytes_of(c.dtype));
    const double rows = static_cast<double>(c.tile.m) / c.cluster.n,
                 columns = static_cast<double>(c.tile.n) / c.cluster.m;
    const N row_bytes = counted<N>("row bytes", rows * line_bytes) * straddling<N>(problem, c, 0);
    const N column_bytes = counted<N>("column bytes", columns * line_bytes) * straddling<N>(problem, c, 1);
    const N bytes = (one_row && wide ? row_bytes * N(price.same_rows_share) : row_bytes) + column_bytes;
    const N copied =
        N(rows * line_bytes) * narrow_copies<N>(c, arch, 0) + N(columns * line_bytes) * narrow_copies<N>(c, arch, 1);
    return {2.0 * c.tile.m * c.tile.n * depth, memory_bytes, bytes, copied, store_us<N>(c, arch), 0.0};
}

// The epilogue of a tile, beside whose products others run. Split sums are finished by another kernel.
template <class N>
N chain_us(const WorkProblem& problem, const KernelConfig& c, double flops, double neighbours) {
    if (problem.chain.is_plain() || (c.split_k > 1 && !c.cluster_k)) return 0.0;
    const ArchSpec& arch = problem.arch;
    const N unit_cycles = N(arch.prices.clock.cycles_per_us) * arch.units;
    const N product_cycles = N(flops) * unit_cycles / (peak_tflops<N>(arch, c.dtype) * 1e6);
    return cycles_us<N>("chain", exposed_chain_cycles<N>(problem, c, neighbours, product_cycles), arch);
}

// A round of blocks that run at the same time.
template <class N>
N round_us(double blocks, const TileWork<N>& tile, const KernelConfig& c, const ArchSpec& arch, double units) {
    if (blocks <= 0) return 0.0;
    const auto& price = arch.prices.block_product;
    const double sharing = std::ceil(blocks / units);  // blocks of a unit
    const N unit_tflops = peak_tflops<N>(arch, c.dtype) * N(price.peak_reached_share) / arch.units;
    const N compute = named("compute", N(sharing * tile.flops) / (unit_tflops * inner_efficiency<N>(c, arch) *
                                                                  filled<N>(c, arch, sharing) * 1e6));
    const bool ahead = c.pipeline == Pipeline::compv3 || c.pipeline == Pipeline::compv4;  // also in registers
    const N on_the_way =
        counted<N>("bytes on the way", sharing * static_cast<double>(buffer_count(c) + (ahead ? 1 : 0)) *
                                           (c.tile.m + c.tile.n) * c.tile.k * static_cast<double>(bytes_of(c.dtype)));
    const N cache_load =
        named("load from cache",
              tile.bytes * sharing / (unit_gbps(price.cache_port_gbps, price.latency_us, on_the_way) * 1e3));
    const N memory_load = bytes_us<N>("load from memory", sharing * tile.memory_bytes,
                                      unit_gbps(price.memory_port_gbps, price.latency_us, on_the_way));
    const N cache = named("cache", tile.bytes * blocks / (rate<N>(arch.cache_gbps) * 1e3));
    const N memory =
        bytes_us<N>("memory", blocks * tile.memory_bytes, rate<N>(arch.memory_gbps) * N(price.memory_reached_share));
    // A warp that copies by itself asks for one access after the other.
    const N unit =
        has_wide_waves(c, arch)
            ? longest({compute, cache_load, memory_load})
            : longest({compute, cache_load, memory_load,
                       named("copies of a warp", tile.copied_bytes / (N(price.warp_copy_gbps) *
                                                                      static_cast<double>(wave_count(c)) * 1e3))});
    // Memory has its time while a unit finishes results.
    const N finished = unit + named("epilogue", tile.chain_us * sharing);
    return soft_max(N(price.sharpness), {named("unit", finished), cache, memory}) +
           named("stores", tile.store_us * sharing);
}

// The time to add up the sums of blocks that share a tile.
template <class N>
N sums_us(const GemmView& v, const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.block_product;
    const double tile_bytes = 4.0 * c.tile.m * c.tile.n;
    if (c.stream_k != StreamK::off) {  // every unit has a tile that it shares
        return N(price.stream_wait_us) + N(tile_bytes * arch.units) / (N(price.stream_gbps) * 1e3);
    }
    if (c.cluster_k) return N(price.cluster_meet_us) + N(tile_bytes) / (N(price.cluster_gbps) * 1e3);
    if (c.split_k <= 1) {  // waves of a block may share out k
        return is_plain_arithmetic(c) && c.wave.k > 1 ? N(price.waves_meet_us) : N(0.0);
    }
    const double bytes = 4.0 * static_cast<double>(v.m) * static_cast<double>(v.n) * static_cast<double>(v.batch);
    return N(bytes * c.split_k * 2) / (rate<N>(arch.cache_gbps) * 1e3) + N(price.second_launch_us);
}

double stream_sharers_of(const KernelConfig& c, double blocks, double steps) {
    return c.stream_k == StreamK::off ? 1 : stream_sharers(static_cast<unsigned>(blocks), static_cast<unsigned>(steps));
}

// The time until the sums of blocks that share a tile have met: one that writes and one that waits, then every slot.
template <class N>
N shared_sums_us(const KernelConfig& c, const ArchSpec& arch, double sharers) {
    if (sharers <= 1) return 0.0;
    const auto& price = arch.prices.block_product;
    return N(price.slot_meet_us) + N((sharers - 1) * 4.0 * c.tile.m * c.tile.n) / (N(price.slot_gbps) * 1e3);
}

}  // namespace

double usable_units(const KernelConfig& c, const ArchSpec& arch) {
    const int together = c.cluster_k ? c.split_k : c.cluster.m * c.cluster.n;
    const auto reached = double(arch.prices.block_product.clustered_units_share);  // by more than two blocks
    const double units = together <= 2 ? arch.units : arch.units * reached;
    return std::max<double>(together, std::floor(units / together) * together);
}

template <class N>
N block_product_us(const GemmView& v, const WorkProblem& problem, const KernelConfig& c) {
    const ArchSpec& arch = problem.arch;
    const auto& price = arch.prices.block_product;
    const std::int64_t rows = c.swap_ab ? v.n : v.m, columns = c.swap_ab ? v.m : v.n;
    const double tiles_m = blocks_of(rows, c.tile.m), tiles_n = blocks_of(columns, c.tile.n);
    const double whole =
        std::ceil(tiles_m / c.cluster.m) * c.cluster.m * std::ceil(tiles_n / c.cluster.n) * c.cluster.n;
    const double tiles = whole * static_cast<double>(v.batch) * c.split_k;
    const double neighbours = blocks_per_unit(c, arch);
    const double units = usable_units(c, arch), places = units * neighbours;

    const double depth = blocks_of(static_cast<std::int64_t>(blocks_of(v.k, c.tile.k)), c.split_k) * c.tile.k;
    const bool one_row = !c.swap_ab && tiles_m == 1 && v.batch == 1;
    TileWork<N> tile = tile_work<N>(problem, c, depth, problem.bytes / tiles, one_row);
    tile.chain_us = chain_us<N>(problem, c, tile.flops, neighbours);
    const double full = std::floor(tiles / places), rest = tiles - full * places;
    // Blocks of stream-K share what is left over.
    const double sharers = rest > 0 ? stream_sharers_of(c, places / rest, depth / c.tile.k) : 1;
    const double rounds = full + (rest > 0 ? 1 / sharers : 0);
    N all_tiles = 0.0;
    if (full > 0) {
        all_tiles = named("full rounds", round_us<N>(places, tile, c, arch, units) * counted<N>("rounds", full));
    }
    if (rest > 0) {
        all_tiles = all_tiles + named("last round", round_us<N>(rest * sharers, tile, c, arch, units) / sharers);
    }
    // Many small blocks that follow each other on a unit never wait all together.
    if (c.pipeline == Pipeline::mem && !has_wide_waves(c, arch)) all_tiles = all_tiles * N(price.many_blocks_share);
    // Blocks that share their copies wait for each other, at the beginning most of all.
    if (c.cluster.m * c.cluster.n > 2) all_tiles = all_tiles * N(price.large_cluster_share) + N(price.large_cluster_us);
    // A persistent block overlaps the ends of its tiles with the next ones; others do with those of their neighbours.
    const N between = (c.persistent ? N(price.between_tiles_us) : N(price.between_blocks_us) / neighbours) *
                      std::max(0.0, rounds - 1);
    return named("tiles", all_tiles) + named("between", between) + N(price.fill_us) + rate<N>(arch.launch_us) +
           named("sums", sums_us<N>(v, c, arch)) + named("shared sums", shared_sums_us<N>(c, arch, sharers));
}
template double block_product_us<double>(const GemmView&, const WorkProblem&, const KernelConfig&);
template Term block_product_us<Term>(const GemmView&, const WorkProblem&, const KernelConfig&);
template Noted block_product_us<Noted>(const GemmView&, const WorkProblem&, const KernelConfig&);

template <class N>
N block_gemm_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan*) {
    const ArchSpec& arch = problem.arch;
    const auto& price = arch.prices.block_product;
    const N product = block_product_us<N>(problem.view.gemm, problem, c);
    if (!packs_operands(c, arch)) return product;
    // Read and written once before anything else.
    double bytes = 0;
    for (int i = 0; i < 2; ++i) {
        if (packs_operand(c, arch, i)) {
            bytes += 2.0 * static_cast<double>(packed_matrices(problem.view.problem, i).bytes());
        }
    }
    return product + bytes_us<N>("packing", bytes, rate<N>(arch.memory_gbps) * N(price.memory_reached_share)) +
           N(price.pack_launch_us);
}
template double block_gemm_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term block_gemm_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted block_gemm_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

}  // namespace tilewise
