// SPDX-License-Identifier: MIT
// Products by a few vectors: one pass over the large operand, whose elements are converted and multiplied meanwhile.
#include <algorithm>
#include <cmath>

#include "config/family_id.hpp"
#include "config/geometry.hpp"
#include "family/cuda/block_product_work.hpp"
#include "family/cuda/works.hpp"

namespace tilewise {
namespace {

// The time of a unit to convert and multiply its share of the elements; chunks from anywhere are joined before, and vectors that
// come by elements put together.
template <class N, class Group>
N vectors_compute_us(const GemmView& v, double k, const KernelConfig& c, const ArchSpec& arch, const Group& price) {
    const auto vectors = static_cast<double>(c.swap_ab ? v.m : v.n);
    const double elements = static_cast<double>((c.swap_ab ? v.n : v.m) * v.batch) * k / arch.units;
    const GemvReads reads = gemv_reads(c);
    N each = N(price.conversion_operations) + N(price.vector_operations) * vectors;
    if (reads.anywhere) each = each + N(price.anywhere_operations);
    if (reads.by_element) each = each + N(price.element_operations) * vectors;
    return named("compute", counted<N>("elements", elements) * each / N(price.operations_per_us));
}

double lines_of(const GemmView& v, const KernelConfig& c) {
    return static_cast<double>((c.swap_ab ? v.n : v.m) * v.batch);
}

}  // namespace

// Blocks share the large operand's lines evenly; the arithmetic counts from a few vectors on.
template <class N>
N gemv_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan*) {
    const ArchSpec& arch = problem.arch;
    const auto& price = arch.prices.gemv;
    const double lines = lines_of(problem.view.gemm, c);
    const double places = static_cast<double>(arch.units) * c.blocks_per_unit;
    const double blocks = std::min(std::ceil(lines / c.tile.m), places);
    // Blocks that are fewer than places gather on some units.
    const double gathered = std::sqrt(std::clamp(places / blocks, 1.0, static_cast<double>(c.blocks_per_unit)));
    // A pass of few lines has as little on its way.
    const double block_lines = std::ceil(lines / blocks), passes = std::ceil(block_lines / c.tile.m);
    const N little = N(1.0) + N(price.little_share) * (1 - block_lines / (passes * c.tile.m));
    N memory = N(problem.bytes) / (rate<N>(arch.memory_gbps) * N(price.memory_reached_share) * 1e3) *
               counted<N>("gathered", gathered) * little;
    // A warp that has its lines alone reads little of each at a time, and tiles of many lines may leave units without any.
    const bool alone = c.wave.k == 1;
    const double busy = alone ? std::min(1.0, blocks / arch.units) : 1;
    if (alone) memory = memory * N(price.short_reads_share) / counted<N>("busy", busy);
    // Lanes without elements of the last step work as long as the others.
    const double whole_k = std::ceil(static_cast<double>(problem.view.gemm.k) / c.tile.k) * c.tile.k;
    return soft_max(N(price.sharpness), {vectors_compute_us<N>(problem.view.gemm, whole_k / busy, c, arch, price),
                                         named("memory", memory)}) +
           term<N>("passes", passes, price.pass_us) + N(price.fill_us) + rate<N>(arch.launch_us);
}
template double gemv_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term gemv_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted gemv_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

// The same where the large operand lies along its lines: a block has the lines of a tile, and of k what its part is.
template <class N>
N gemv_rows_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan*) {
    const ArchSpec& arch = problem.arch;
    const auto& price = arch.prices.gemv_rows;
    const double blocks = std::ceil(lines_of(problem.view.gemm, c) / c.tile.m) * c.split_k;
    const double sharing = std::ceil(blocks / arch.units), rounds = std::ceil(sharing / c.blocks_per_unit);
    // A lane has what it multiplies next on its way, and some of this step's.
    constexpr double kAccessBytes = 16;
    const double lane_bytes =
        static_cast<double>(threads_per_block(c, arch)) * kAccessBytes * std::min<double>(sharing, c.blocks_per_unit);
    const double rows_share = gemv_reads(c).anywhere ? 0.5 : 1;  // of the rows that fit into registers
    const N unit = bytes_us<N>(
        "unit", problem.bytes / blocks * sharing,
        unit_gbps(price.memory_port_gbps, price.latency_us, N(lane_bytes * rows_share) * N(price.rows_on_the_way)));
    const N memory = bytes_us<N>("memory", problem.bytes, rate<N>(arch.memory_gbps) * N(price.memory_reached_share));
    const auto k = static_cast<double>(problem.view.gemm.k);
    const N time =
        soft_max(N(price.sharpness), {unit, memory, vectors_compute_us<N>(problem.view.gemm, k, c, arch, price)}) +
        term<N>("rounds", rounds, price.fill_us) + rate<N>(arch.launch_us);
    return c.cluster_k ? time + N(price.cluster_meet_us) : time;
}
template double gemv_rows_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term gemv_rows_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted gemv_rows_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

}  // namespace tilewise
