// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "family/cpu/micro_kernel_work.hpp"
#include "family/cpu/works.hpp"

namespace tilewise {
namespace {

// One-row micro-kernels read both operands as they are.
bool has_one_row(const KernelConfig& c) { return c.warp_tile.m == 1 && c.pipeline != Pipeline::preshuffle; }

// An operand as the loop nest sees it: one feeds the rows of the micro-kernels, the other their vectors.
struct Side {
    std::int64_t size = 0;          // rows or columns
    double bytes = 0;               // of the whole batch
    bool k_adjacent = false;        // neighbours in k are neighbours in memory
    std::int64_t stride_bytes = 0;  // between neighbours in the other direction, of k or of rows
    bool in_place = false;          // read as it lies, without packing
};
struct Sides {
    Side rows, vectors;
};

Side side_of(const ProblemView& view, int operand, std::int64_t size, DType type) {
    const Problem& problem = view.problem;
    const auto k = static_cast<double>(view.gemm.k * view.gemm.batch);
    Side side{size, k * static_cast<double>(size * bytes_of(type)), true, 0, false};
    if (problem.op == Op::gemm) {
        side.k_adjacent = is_row(problem.layout, operand) == (operand == 0);
        side.stride_bytes = leading_stride(problem, operand) * bytes_of(type);
    }
    return side;
}

// Which operand is on which side, and which of them is packed, as kernels/cpu/blocked_gemm/blocked_gemm.hpp and kernels/cpu/blocked.hpp decide it.
Sides sides_of(const ProblemView& view, const KernelConfig& c) {
    const GemmView& v = view.gemm;
    const bool ahead = c.pipeline == Pipeline::preshuffle;
    Sides sides = {side_of(view, 0, v.m, c.dtype), side_of(view, 1, v.n, c.dtype_b)};
    const bool row_major = is_conv(view.problem.op) || is_row(view.problem.layout, 2);
    if (!ahead && c.swap_ab == row_major) std::swap(sides.rows, sides.vectors);
    auto& [rows, vectors] = sides;
    const int depth = c.warp_tile.k;
    const bool as_stored = (c.dtype == DType::fp32 && depth == 1) || (c.dtype == DType::bf16 && depth == 2);
    const bool may_read_rows = c.pipeline == Pipeline::basic_v1 || c.pipeline == Pipeline::mem;
    rows.in_place = as_stored && may_read_rows && (rows.k_adjacent ? v.k % depth == 0 : depth == 1);
    vectors.in_place = as_stored && c.pipeline == Pipeline::basic_v1 && depth == 1 && !vectors.k_adjacent;
    if (has_one_row(c)) rows.in_place = vectors.in_place = true;
    if (ahead) vectors.in_place = true;
    return sides;
}

// Values of k that lie pages apart miss the address cache; of rows whose distance is a large power of two, more share a set of the
// first cache than it has ways.
bool is_far(const Side& side, int rows_at_once) {
    constexpr std::int64_t kPageBytes = 4096;  // also what all sets of the first cache span
    constexpr std::int64_t kWays = 8;
    return side.k_adjacent ? rows_at_once * std::gcd(side.stride_bytes, kPageBytes) > kWays * kPageBytes
                           : side.stride_bytes >= kPageBytes;
}

// In place, an operand is read again for every block of the other: in bytes of the cache, as far as that costs. A one-row
// micro-kernel reads all of B for every row.
template <class N>
N reread_bytes(const Sides& sides, double row_blocks, double column_blocks, const KernelConfig& c,
               const ArchSpec& arch) {
    const auto& price = arch.prices.blocked_gemm;
    const auto& [rows, vectors] = sides;
    if (has_one_row(c)) return counted<N>("reread", vectors.bytes * static_cast<double>(rows.size - 1));
    const auto share = [&](const Side& side, int rows_at_once) -> const Price& {
        return is_far(side, rows_at_once) ? price.far_reread_share : price.near_reread_share;
    };
    const bool ahead = c.pipeline == Pipeline::preshuffle;
    N bytes = 0.0;
    if (rows.in_place) bytes = term<N>("reread rows", rows.bytes * column_blocks, share(rows, c.warp_tile.m));
    if (vectors.in_place && !ahead)
        bytes = bytes + term<N>("reread vectors", vectors.bytes * row_blocks, share(vectors, 1));
    return bytes;
}

}  // namespace

template <class N>
N blocked_gemm_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan*) {
    const ArchSpec& arch = problem.arch;
    const auto& price = arch.prices.blocked_gemm;
    const GemmView& v = problem.view.gemm;
    const auto m = static_cast<double>(v.m), n = static_cast<double>(v.n);
    const auto batch = static_cast<double>(v.batch);
    const Sides sides = sides_of(problem.view, c);
    const auto& [rows, vectors] = sides;
    const double parts =
        blocks_of(rows.size, c.warp_tile.m) * blocks_of(vectors.size, c.warp_tile.n) * batch * c.split_k;
    const double workers = std::min<double>(problem.threads, parts);
    const double balance = parts / (std::ceil(parts / workers) * workers);
    const MicroKernelWork work = product_work({rows.size, vectors.size, v.k, c.tile.k}, batch, c, vector_lanes(arch));
    const N compute = named(
        "compute", micro_kernel_steps<N>(work, price) * step_us<N>(c, arch) / counted<N>("workers", workers * balance));

    // The rows' operand is packed again for every block of columns, the vectors' once; sums between blocks of k travel
    // through the cache.
    const double column_blocks = blocks_of(vectors.size, c.tile.n), row_blocks = blocks_of(rows.size, c.tile.m);
    const double packed = (rows.in_place ? 0 : rows.bytes * column_blocks) + (vectors.in_place ? 0 : vectors.bytes);
    const N packing = bytes_us<N>("packing", packed, rate<N>(arch.pack_gbps) * workers);
    const double passes = blocks_of(v.k, c.tile.k) - 1;
    const double summed = 2 * 4 * m * n * batch * (passes + (c.split_k > 1 ? c.split_k : 0));
    const N byte = named("cached byte", N(1.0) / (rate<N>(arch.cache_gbps) * 1e3 * workers));
    // With vectors across C's contiguous side, every value is stored alone.
    const double turned = c.swap_ab && !has_one_row(c) ? 4 * m * n * batch : 0;
    const N memory = bytes_us<N>("memory", problem.bytes, rate<N>(arch.memory_gbps));
    // The longer hides the shorter but for a share.
    return overlap(N(price.not_hidden_share), {compute, memory}) + packing + counted<N>("sum bytes", summed) * byte +
           reread_bytes<N>(sides, row_blocks, column_blocks, c, arch) * byte +
           term<N>("turned stores", turned, price.turned_store_share) * byte +
           named("launch", rate<N>(arch.launch_us) * (problem.threads > 1 ? 2.0 : 1.0));
}
template double blocked_gemm_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term blocked_gemm_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted blocked_gemm_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

WorkColumns blocked_gemm_columns(const KernelConfig& c, const ArchSpec& arch) {
    return WorkColumns(least_product_us(c, arch, arch.prices.blocked_gemm));
}

double blocked_gemm_least(const WorkProblem& problem, const KernelConfig& c, const WorkColumns& columns) {
    const ArchSpec& arch = problem.arch;
    const auto& price = arch.prices.blocked_gemm;
    const GemmView& v = problem.view.gemm;
    const auto m = static_cast<double>(v.m), n = static_cast<double>(v.n);
    const double sums = m * n * static_cast<double>(v.batch), lanes = static_cast<double>(vector_lanes(arch));
    const double compute = sums / lanes * static_cast<double>(v.k) * columns.as<double>() / problem.threads;
    const double memory = problem.bytes / (arch.memory_gbps * 1e3);
    // Sums of split reductions travel through the cache.
    const double summed = c.split_k > 1 ? 8 * sums * c.split_k / (arch.cache_gbps * 1e3 * problem.threads) : 0;
    return overlap(double(price.not_hidden_share), {compute, memory}) + summed +
           arch.launch_us * (problem.threads > 1 ? 2.0 : 1.0);
}

}  // namespace tilewise
