// SPDX-License-Identifier: MIT
#include "family/cpu/partition.hpp"

#include <algorithm>

#include "base/rounding.hpp"
#include "config/fit.hpp"
#include "config/workspace.hpp"

namespace tilewise {
namespace {

struct Grid {
    std::int64_t rows = 1, columns = 1;
};

// Cuts m x n micro-kernels into about `parts` rectangles: every thread reads its rows of A and its columns of B, so the
// grid with the least of both per thread that keeps the threads evenly busy wins.
Grid choose_grid(std::int64_t m_units, std::int64_t n_units, const KernelConfig& c, std::int64_t parts) {
    Grid best;
    double best_cost = 0;
    for (std::int64_t rows = 1; rows <= std::min(parts, m_units); ++rows) {
        const Grid grid{rows, std::min(parts / rows, n_units)};
        const auto height = static_cast<double>(ceil_div(m_units, grid.rows) * c.warp_tile.m);
        const auto width = static_cast<double>(ceil_div(n_units, grid.columns) * c.warp_tile.n);
        // The slowest thread's arithmetic per unit of k, and the elements it packs, which cost some tens of flops each.
        constexpr double kPackingCost = 16;
        const double cost = height * width + kPackingCost * (height + width);
        if (rows == 1 || cost < best_cost) {
            best = grid;
            best_cost = cost;
        }
    }
    return best;
}

// The rows of the matrix that is gathered ahead: those of A, or of B in backward weight.
std::vector<KernelPart> expand_parts(const GemmView& gemm, const KernelConfig& c, std::int64_t count) {
    const std::int64_t rows = c.op == Op::conv_bwd_weight ? gemm.k : gemm.m;
    std::vector<KernelPart> parts;
    count = std::min(count, rows);
    for (std::int64_t i = 0; i < count; ++i) {
        const auto [begin, end] = share(rows, 1, count, i);
        parts.push_back({begin, end, 0, gemm.n, 0, gemm.batch, 0});
    }
    return parts;
}

}  // namespace

std::pair<std::int64_t, std::int64_t> share(std::int64_t size, std::int64_t unit, std::int64_t count, std::int64_t i) {
    const std::int64_t units = ceil_div(size, unit);
    const auto before = [&](std::int64_t parts) { return units / count * parts + units % count * parts / count; };
    return {std::min(size, before(i) * unit), std::min(size, before(i + 1) * unit)};
}

CpuParts partition(const GemmView& gemm, const KernelConfig& c, int threads) {
    CpuParts parts;
    parts.threads = threads;
    const double work = 2.0 * static_cast<double>(gemm.m) * static_cast<double>(gemm.n) * static_cast<double>(gemm.k) *
                        static_cast<double>(gemm.batch);
    if (work < kSmallFlops) parts.threads = 1;

    const std::int64_t wanted = parts.threads;
    const std::int64_t batch_parts = std::min<std::int64_t>(gemm.batch, wanted);
    const std::int64_t per_batch = std::max<std::int64_t>(1, wanted / batch_parts);
    const Grid grid = choose_grid(ceil_div(gemm.m, c.warp_tile.m), ceil_div(gemm.n, c.warp_tile.n), c,
                                  std::max<std::int64_t>(1, per_batch / c.split_k));
    for (std::int64_t b = 0; b < batch_parts; ++b) {
        const auto [batch_begin, batch_end] = share(gemm.batch, 1, batch_parts, b);
        for (std::int64_t column = 0; column < grid.columns; ++column) {
            const auto [n_begin, n_end] = share(gemm.n, c.warp_tile.n, grid.columns, column);
            for (std::int64_t row = 0; row < grid.rows; ++row) {
                const auto [m_begin, m_end] = share(gemm.m, c.warp_tile.m, grid.rows, row);
                KernelPart part{m_begin, m_end, n_begin, n_end, batch_begin, batch_end, 0};
                if (sums_in_workspace(c)) parts.reduce.push_back(part);
                for (part.k_part = 0; part.k_part < c.split_k; ++part.k_part) parts.run.push_back(part);
            }
        }
    }
    if (c.explicit_gemm) parts.expand = expand_parts(gemm, c, wanted);
    return parts;
}

}  // namespace tilewise
