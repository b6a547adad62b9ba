// SPDX-License-Identifier: MIT
#include "family/launch_spec.hpp"

#include <algorithm>

#include "config/family_id.hpp"
#include "config/geometry.hpp"
#include "config/im2col.hpp"
#include "kernels/common/to_int.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

constexpr int kSwizzleBytes = 128;  // a line of a box, and the depth of every tile that tensor copies fill

// A box is the whole extent along the lines, 128 bytes along a line; a longer extent takes several boxes.
TensorBox operand_box(const KernelConfig& c, int operand) {
    const std::int64_t bytes = bytes_of(operand_dtype(c, operand));
    const bool along_k = contiguous_axis(c, operand) == Axis::k;
    const std::int64_t line = !is_conv(c.op) || (operand == 0 && !along_k) ? kSwizzleBytes
                              : operand == 0                               ? depth_bytes(c)
                                                                           : column_line_bytes(c);
    const int columns = to_int(line / bytes);
    const bool rows = (operand == 0) != c.swap_ab;  // the operand of the tile's rows
    const int extent = rows ? c.tile.m : c.tile.n;
    // Blocks of a cluster that use the same tile each copy a share of its lines.
    const int sharers = rows ? c.cluster.n : c.cluster.m;
    const int room = operand == 0 ? room_lines(c) : 0;
    return {(along_k ? extent + room : c.tile.k / joined_taps(c)) / sharers, columns};
}

// kStoreColumns in kernels/cuda/wgmma_gemm/wgmma_shape.hpp.
int store_columns(const KernelConfig& c) {
    int columns = to_int(kSwizzleBytes / bytes_of(c.dtype_out));
    if (walks_taps(c) && c.op != Op::conv_bwd_weight) {
        while (c.tile.n <= columns / 2) columns /= 2;
    } else {
        while (c.tile.n % columns != 0) columns /= 2;
    }
    return columns;
}

// Warps that only copy need few registers; the others share the rest of the unit's, in the steps that the chip hands out.
void divide_registers(LaunchSpec& spec, const KernelConfig& c, const ArchSpec& arch) {
    constexpr int kCopyRegisters = 56, kStep = 8, kMost = 240;
    const int waves = to_int(wave_count(c));
    if (waves < 2 || c.producer_waves == 0 || arch.registers == 0) return;  // each has all it can use
    // Blocks that hand over registers have the unit to themselves; those of a cluster that shares out k are small.
    constexpr int kMostSharing = 64;
    if (shares_unit(c, arch) || (c.cluster_k && accumulators_per_thread(c, arch) <= kMostSharing)) return;
    const int each = (arch.registers / arch.wide_wave_size - kCopyRegisters * c.producer_waves) / waves;
    spec.copy_registers = kCopyRegisters;
    spec.compute_registers = std::min(kMost, each / kStep * kStep);
}

}  // namespace

bool drains_whole_vectors(const KernelConfig& c) {
    constexpr int kRows = 16, kLeast = 4, kSumBytes = 4;
    if (contiguous_axis(c, 2) != Axis::n) return c.vector_c <= kRows;
    if (c.dtype == DType::fp32 && c.warp_tile.k == 1 && family_of(c) != FamilyId::fp64_gemm)
        return c.warp_tile.n % c.vector_c == 0;
    const std::int64_t lines =
        std::int64_t{c.tile.m} * bytes_of(c.dtype) + std::int64_t{c.tile.n} * bytes_of(c.dtype_b);
    const std::int64_t buffers = buffer_count(c) * lines * c.tile.k;
    std::int64_t columns = c.tile.n / c.wave.n;
    while (columns > kLeast && columns * kRows * wave_count(c) * kSumBytes > buffers) columns /= 2;
    return columns % c.vector_c == 0;
}

int most_warpgroups(const KernelConfig& c) {
    constexpr int kMostColumnsOfThree = 192;
    return c.pipeline == Pipeline::compv6 && bytes_of(c.dtype) == 2 && c.tile.n <= kMostColumnsOfThree ? 3 : 2;
}

LaunchSpec block_spec(const KernelConfig& c, const ArchSpec& arch) {
    LaunchSpec spec;
    spec.threads = to_int(threads_per_block(c, arch));
    spec.shared_bytes = block_shared_bytes(c, arch);
    spec.cluster = c.cluster_k ? Shape2{c.split_k, 1} : c.cluster;
    spec.persistent = c.persistent;
    if (!has_wide_waves(c, arch)) return spec;
    divide_registers(spec, c, arch);
    spec.boxes = {operand_box(c, 0), operand_box(c, 1), TensorBox{}};
    if (c.pipeline == Pipeline::preshuffle) spec.boxes[1] = {};  // its tiles lie as they are copied
    // Results leave by tensor copies of one wave's rows, lines of at most 128 bytes.
    const int columns = store_columns(c);
    const bool whole_lines = c.vector_c * bytes_of(c.dtype_out) == arch.load_bytes;
    if (!c.swap_ab && !c.cluster_k && whole_lines) spec.boxes[2] = {arch.wide_wave_rows, columns};
    return spec;
}

}  // namespace tilewise
