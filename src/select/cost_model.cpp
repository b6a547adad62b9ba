// SPDX-License-Identifier: MIT
#include "select/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "select/machine_rates.hpp"
#include "select/micro_kernel_cost.hpp"

namespace tilewise {
namespace {

constexpr MicroKernelPrices kPrices = {0.2, 0.02, 10, 1, 4};

// One-row micro-kernels read both operands as they are.
bool is_gemv(const KernelConfig& c) { return c.warp_tile.m == 1 && c.pipeline != Pipeline::preshuffle; }

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

// Which operand is on which side, and which of them is packed, as kernels/cpu/gemm.hpp and blocked.hpp decide it.
Sides sides_of(const ProblemView& view, const KernelConfig& c) {
    const GemmView& v = view.gemm;
    const bool ahead = c.pipeline == Pipeline::preshuffle;
    Sides sides = {side_of(view, 0, v.m, c.dtype), side_of(view, 1, v.n, c.dtype_b)};
    const bool row_major = view.problem.op != Op::gemm || is_row(view.problem.layout, 2);
    if (!ahead && c.swap_ab == row_major) std::swap(sides.rows, sides.vectors);
    auto& [rows, vectors] = sides;
    const int depth = c.warp_tile.k;
    const bool as_stored = (c.dtype == DType::fp32 && depth == 1) || (c.dtype == DType::bf16 && depth == 2);
    const bool may_read_rows = c.pipeline == Pipeline::basic_v1 || c.pipeline == Pipeline::mem;
    rows.in_place = as_stored && may_read_rows && (rows.k_adjacent ? v.k % depth == 0 : depth == 1);
    vectors.in_place = as_stored && c.pipeline == Pipeline::basic_v1 && depth == 1 && !vectors.k_adjacent;
    if (is_gemv(c)) rows.in_place = vectors.in_place = true;
    if (ahead) vectors.in_place = true;
    return sides;
}

// How much more than once through the cache reading an operand in place costs. Values of k that lie pages apart miss the
// address cache; of rows whose distance is a large power of two, more share a set of the first cache than it has ways.
double in_place_cost(const Side& side, int rows_at_once) {
    constexpr double kNear = 0.5, kFar = 6;
    constexpr std::int64_t kPageBytes = 4096;  // also what all sets of the first cache span
    constexpr std::int64_t kWays = 8;
    const bool far = side.k_adjacent ? rows_at_once * std::gcd(side.stride_bytes, kPageBytes) > kWays * kPageBytes
                                     : side.stride_bytes >= kPageBytes;
    return far ? kFar : kNear;
}

}  // namespace

double predicted_us(const ProblemView& view, const KernelConfig& c, const ArchSpec& arch, int threads) {
    const GemmView& v = view.gemm;
    const auto m = static_cast<double>(v.m), n = static_cast<double>(v.n);
    const auto batch = static_cast<double>(v.batch);
    const auto [rows, vectors] = sides_of(view, c);
    const double parts =
        blocks_of(rows.size, c.warp_tile.m) * blocks_of(vectors.size, c.warp_tile.n) * batch * c.split_k;
    const double workers = std::min<double>(threads, parts);
    const double balance = parts / (std::ceil(parts / workers) * workers);
    const MicroKernelWork work = product_work({rows.size, vectors.size, v.k, c.tile.k}, batch, c, vector_lanes(arch));
    const double compute_us = steps(work, kPrices) * step_us(c, arch) / (workers * balance);

    // The rows' operand is packed again for every block of columns, the vectors' once; sums between blocks of k travel
    // through the cache.
    const double column_blocks = blocks_of(vectors.size, c.tile.n), row_blocks = blocks_of(rows.size, c.tile.m);
    const double packed = (rows.in_place ? 0 : rows.bytes * column_blocks) + (vectors.in_place ? 0 : vectors.bytes);
    const double pack_us = packed / (arch.pack_gbps * 1e3 * workers);
    const double cache_us = 1 / (arch.cache_gbps * 1e3 * workers);
    const double passes = blocks_of(v.k, c.tile.k) - 1;
    const double sums_us = 2 * 4 * m * n * batch * (passes + (c.split_k > 1 ? c.split_k : 0)) * cache_us;

    // In place, an operand is read again for every block of the other; a one-row micro-kernel reads all of B for every row.
    double reread = 0;
    if (is_gemv(c)) {
        reread = vectors.bytes * static_cast<double>(rows.size - 1);
    } else {
        if (rows.in_place) reread += rows.bytes * column_blocks * in_place_cost(rows, c.warp_tile.m);
        const bool ahead = c.pipeline == Pipeline::preshuffle;
        if (vectors.in_place && !ahead) reread += vectors.bytes * row_blocks * in_place_cost(vectors, 1);
    }
    // With vectors across C's contiguous side, every value is stored alone.
    constexpr double kTurnedCost = 8;
    const double turned_us = c.swap_ab && !is_gemv(c) ? kTurnedCost * 4 * m * n * batch * cache_us : 0;
    const double memory_us = bytes_moved(view.problem) / (arch.memory_gbps * 1e3);
    // Of the two, the shorter is not hidden quite.
    constexpr double kNotHidden = 0.1;
    const double floor_us = std::max(compute_us, memory_us) + kNotHidden * std::min(compute_us, memory_us);
    return floor_us + pack_us + sums_us + reread * cache_us + turned_us + arch.launch_us * (threads > 1 ? 2 : 1);
}

}  // namespace tilewise
