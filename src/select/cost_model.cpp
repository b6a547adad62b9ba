// SPDX-License-Identifier: MIT
#include "select/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "select/machine_rates.hpp"

namespace tilewise {
namespace {

// The arch file's peak is that of the deepest warp tile of a type. Shallower ones multiply in fp32, or a few values at a time.
double peak_tflops(const ArchSpec& arch, const KernelConfig& c) {
    const double peak = peak_tflops(arch, c.dtype);
    int deepest = c.warp_tile.k;
    if (const WarpTiles* listed = arch.find_warp_tiles({c.dtype, c.dtype_b})) {
        for (const Shape3& tile : listed->tiles) deepest = std::max(deepest, tile.k);
    }
    return c.warp_tile.k == deepest ? peak : std::min(peak, c.warp_tile.k * peak_tflops(arch, DType::fp32));
}

constexpr int kAmxDepth = 32;  // warp tiles this deep are AMX tiles, which are always computed whole

// The next smaller piece, as the kernels cut what a whole micro-kernel does not cover (kernels/cpu/vector_core.hpp).
std::int64_t smaller_piece(std::int64_t size) {
    std::int64_t power = 1;
    while (power * 2 < size) power *= 2;
    return power;
}

// The length of k as the micro-kernels see it.
struct Depth {
    double units;   // of warp tile's depth
    double blocks;  // of the tile's depth: after each, sums are stored
};

// Time is counted in steps here, one vector multiply-add at the arch's peak. A piece reads `vectors` vectors of B and
// broadcasts `rows` values of A for rows x vectors products; fewer sums than the multiplier is long leave it idle. Sums of a
// panel that is not whole take a detour through a scratch tile.
double piece_steps(double rows, double vectors, const Depth& k, bool whole) {
    constexpr double kPerRow = 0.2, kPerVector = 0.02, kFewestSums = 4;
    constexpr double kCall = 10, kStore = 1, kDetour = 4;
    const double per_unit = std::max(rows * vectors, kFewestSums) * (1 + kPerRow / rows + kPerVector / vectors);
    return per_unit * k.units + k.blocks * (kCall + rows * vectors * (whole ? kStore : kDetour));
}

// All columns under `rows` rows. The last panel is narrower only under whole micro-kernels.
double row_steps(std::int64_t rows, std::int64_t n, const Shape3& tile, std::int64_t lanes, const Depth& k) {
    const std::int64_t vectors = std::max<std::int64_t>(tile.n / lanes, 1), left = n % tile.n;
    std::int64_t last = vectors;
    while (rows == tile.m && last > 1 && left <= smaller_piece(last) * lanes) last = smaller_piece(last);
    const auto steps = [&](std::int64_t width, bool whole) {
        return piece_steps(static_cast<double>(rows), static_cast<double>(width), k, whole);
    };
    return static_cast<double>(n / tile.n) * steps(vectors, true) + (left > 0 ? steps(last, false) : 0);
}

double product_steps(std::int64_t m, std::int64_t n, const Shape3& tile, std::int64_t lanes, const Depth& k) {
    double steps = static_cast<double>(m / tile.m) * row_steps(tile.m, n, tile, lanes, k);
    std::int64_t piece = tile.m;
    for (std::int64_t left = m % tile.m; left > 0; left -= piece) {
        while (piece > left) piece = smaller_piece(piece);
        steps += row_steps(piece, n, tile, lanes, k);
    }
    return steps;
}

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
    const double k = static_cast<double>(view.gemm.k * view.gemm.batch);
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

// One matrix of the batch on one thread.
double arithmetic_us(std::int64_t m, std::int64_t n, std::int64_t k, const KernelConfig& c, const ArchSpec& arch) {
    const Shape3& tile = c.warp_tile;
    const std::int64_t lanes = std::max(1, arch.load_bytes / 4);
    const Depth depth = {blocks_of(k, tile.k), blocks_of(k, c.tile.k)};
    const bool whole_tiles = tile.k >= kAmxDepth;
    const double whole_steps =
        blocks_of(m, tile.m) * blocks_of(n, tile.n) * tile.m * tile.n / static_cast<double>(lanes);
    const double steps = whole_tiles ? whole_steps * depth.units : product_steps(m, n, tile, lanes, depth);
    return steps * static_cast<double>(2 * lanes * tile.k) / (peak_tflops(arch, c) * 1e6);
}

}  // namespace

double predicted_us(const ProblemView& view, const KernelConfig& c, const ArchSpec& arch, int threads) {
    const GemmView& v = view.gemm;
    const double m = static_cast<double>(v.m), n = static_cast<double>(v.n);
    const double batch = static_cast<double>(v.batch);
    const auto [rows, vectors] = sides_of(view, c);
    const double parts =
        blocks_of(rows.size, c.warp_tile.m) * blocks_of(vectors.size, c.warp_tile.n) * batch * c.split_k;
    const double workers = std::min<double>(threads, parts);
    const double balance = parts / (std::ceil(parts / workers) * workers);
    const double compute_us = arithmetic_us(rows.size, vectors.size, v.k, c, arch) * batch / (workers * balance);

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
