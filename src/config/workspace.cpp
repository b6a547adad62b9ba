// SPDX-License-Identifier: MIT
#include "config/workspace.hpp"

#include <algorithm>

#include "base/bounded_product.hpp"
#include "config/conv_tiles.hpp"
#include "config/geometry.hpp"
#include "config/packing.hpp"
#include "kernels/common/stream_slots.hpp"

namespace tilewise {

bool sums_in_workspace(const KernelConfig& c) {
    // The sums of backward weight over several chunks of images have to wait for each other too.
    return (c.split_k > 1 && !c.cluster_k) || c.two_stage || (c.split_image && c.op == Op::conv_bwd_weight) ||
           c.gather == Gather::columns;
}

namespace {

// Sums of a part: one for each result, or for every column that they are added up from.
std::int64_t part_sums(const ProblemView& v, const KernelConfig& c) {
    if (c.gather != Gather::columns) return v.elements[2];
    const GemmView columns = columns_view(v.problem);
    return bounded_product({columns.batch, columns.m, columns.n});
}

}  // namespace

std::int64_t workspace_bytes(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch, int planned_parts) {
    constexpr std::int64_t kPartialBytes = 4;  // partial sums are fp32 or int32
    std::int64_t bytes = 0;
    std::int64_t parts = c.deterministic ? c.split_k : 1;
    if (planned_parts > 0) parts = planned_parts / cluster_parts(c);
    if (sums_in_workspace(c)) bytes += bounded_product({part_sums(v, c), kPartialBytes, parts});
    if (c.stream_k != StreamK::off) {
        const std::int64_t slot = bounded_product({c.tile.m, c.tile.n, kPartialBytes});
        bytes += bounded_product({arch.units, c.blocks_per_unit, slot + kFlagBytes});
    }
    if (c.explicit_gemm) {
        // The im2col matrix: every reduction element of every row (backward weight: of every column).
        const std::int64_t rows = c.op == Op::conv_bwd_weight ? v.gemm.n : v.gemm.m;
        bytes = whole_packs(std::min(bytes, kMostProduct)) +
                bounded_product({v.gemm.batch, rows, v.gemm.k, bytes_of(c.dtype)});
    }
    for (int i = 0; i < 2; ++i) {
        if (!packs_operand(c, arch, i)) continue;
        const PackedMatrices packed = packed_matrices(v.problem, i);
        bytes = whole_packs(std::min(bytes, kMostProduct)) +
                bounded_product({packed.line_bytes(), packed.lines, packed.matrices});
    }
    return std::min(bytes, kMostProduct);
}

}  // namespace tilewise
