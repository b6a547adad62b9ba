// SPDX-License-Identifier: MIT
#include "config/packing.hpp"

#include "config/geometry.hpp"
#include "kernels/common/to_int.hpp"

namespace tilewise {

bool packs_operand(const KernelConfig& c, const ArchSpec& arch, int operand) {
    return c.op == Op::gemm && has_wide_waves(c, arch) && access_bytes(c, operand) != kPackedBytes;
}

bool packs_operands(const KernelConfig& c, const ArchSpec& arch) {
    return packs_operand(c, arch, 0) || packs_operand(c, arch, 1);
}

PackedMatrices packed_matrices(const Problem& p, int operand) {
    const DType dtype = operand == 0 ? p.dtype_a : p.dtype_b;
    const std::int64_t elements = (operand == 0 ? p.gemm.m : p.gemm.n) * p.gemm.k;
    const std::int64_t length = contiguous_length(p, operand);
    const bool shared = batch_stride(p, operand) == 0;  // by the whole batch
    return {length, elements / length, shared ? 1 : p.gemm.batch, to_int(bytes_of(dtype))};
}

std::int64_t packed_offset(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int operand) {
    const std::int64_t sums = partial_bytes(p.gemm.m, p.gemm.n, p.gemm.batch, c.split_k);
    return operand == 1 && packs_operand(c, arch, 0) ? sums + packed_matrices(p, 0).bytes() : sums;
}

PackedB packed_b(const Problem& p, const KernelConfig& c) {
    const std::int64_t tile_bytes = std::int64_t{c.tile.n} * c.tile.k * bytes_of(c.dtype_b);
    return {p.gemm.n, p.gemm.k, batch_stride(p, 1) == 0 ? 1 : p.gemm.batch, c.tile.n, c.tile.k, to_int(tile_bytes)};
}

}  // namespace tilewise
