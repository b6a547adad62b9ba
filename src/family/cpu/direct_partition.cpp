// SPDX-License-Identifier: MIT
#include "family/cpu/direct_partition.hpp"

#include <algorithm>

#include "config/fit.hpp"
#include "config/workspace.hpp"
#include "family/cpu/partition.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

std::int64_t output_lines(const Problem& p) {
    const Extents size = p.op == Op::conv_bwd_data ? p.conv.in : output_size(p.conv);
    std::int64_t lines = p.conv.n;
    for (int i = 0; i + 1 < size.rank; ++i) lines *= size[i];
    return lines;
}

}  // namespace

CpuParts direct_partition(const Problem& p, const KernelConfig& c, int threads) {
    CpuParts parts;
    parts.threads = flops(p) < kSmallFlops ? 1 : threads;
    const bool weight = p.op == Op::conv_bwd_weight;
    const std::int64_t channels = p.op == Op::conv_bwd_data ? p.conv.c : p.conv.k;
    const std::int64_t blocks = (channels + c.warp_tile.n - 1) / c.warp_tile.n;
    const std::int64_t lines = weight ? 1 : output_lines(p);
    // Lines first: parts that differ in them alone read what lies side by side in memory.
    const std::int64_t wanted = std::max(1, parts.threads / (weight ? c.split_k : 1));
    const std::int64_t rows = std::min(lines, wanted), columns = std::min(blocks, wanted / rows);
    for (std::int64_t column = 0; column < columns; ++column) {
        const auto [n_begin, n_end] = share(channels, c.warp_tile.n, columns, column);
        for (std::int64_t row = 0; row < rows; ++row) {
            const auto [m_begin, m_end] = share(lines, 1, rows, row);
            KernelPart part{m_begin, m_end, n_begin, n_end, 0, 1, 0};
            if (sums_in_workspace(c)) parts.reduce.push_back(part);
            for (part.k_part = 0; part.k_part < c.split_k; ++part.k_part) parts.run.push_back(part);
        }
    }
    return parts;
}

}  // namespace tilewise
