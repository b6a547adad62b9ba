// SPDX-License-Identifier: MIT
#include "config/geometry.hpp"

#include <algorithm>

#include "base/bounded_product.hpp"
#include "config/depthwise_spec.hpp"
#include "config/family_id.hpp"
#include "config/im2col.hpp"
#include "kernels/common/patch_wgrad_args.hpp"
#include "kernels/common/wgrad_sums.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

std::int64_t threads_per_wave(const KernelConfig& c, const ArchSpec& arch) {
    return has_wide_waves(c, arch) ? arch.wide_wave_size : arch.wave_size;
}

bool is_multiple(int value, std::int64_t of) { return value > 0 && of > 0 && value % of == 0; }

// Configs are checked before they are known to be sane, so products of their fields must not overflow.
constexpr std::int64_t kMostWaves = 1 << 20;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;

}  // namespace

bool has_wide_waves(const KernelConfig& c, const ArchSpec& arch) {
    return arch.wide_wave_rows > 0 && c.warp_tile.m >= arch.wide_wave_rows &&
           c.specialization != Specialization::depthwise;
}

bool shares_unit(const KernelConfig& c, const ArchSpec& arch) {
    return has_wide_waves(c, arch) && c.op == Op::gemm && c.producer_waves > 0 && c.blocks_per_unit > 1;
}

std::int64_t wave_count(const KernelConfig& c) {
    return std::min(std::int64_t{c.wave.m} * c.wave.n * c.wave.k, kMostWaves);
}

std::int64_t threads_per_block(const KernelConfig& c, const ArchSpec& arch) {
    // Blocks that share a unit leave registers to those that compute: one warp copies.
    if (shares_unit(c, arch)) return wave_count(c) * threads_per_wave(c, arch) + arch.wave_size;
    return (wave_count(c) + c.producer_waves) * threads_per_wave(c, arch);
}

std::int64_t accumulators_per_thread(const KernelConfig& c, const ArchSpec& arch) {
    // Depthwise kernels of GPUs walk down their tile; what they hold meanwhile depends on the filter.
    if (arch.is_gpu() && c.specialization == Specialization::depthwise) {
        return std::int64_t{c.warp_tile.m} * c.warp_tile.n / arch.wave_size;
    }
    // Waves that split k each hold the whole m x n tile of their part; so do warpgroups that take turns on tiles.
    const bool takes_turns = c.pipeline == Pipeline::compv5 && has_wide_waves(c, arch);
    const std::int64_t waves = takes_turns ? 1 : std::int64_t{c.wave.m} * c.wave.n;
    const std::int64_t threads = waves * threads_per_wave(c, arch);
    // Warpgroups add up products of 8-bit floats by parts, in fp32: sums of the part and of all.
    const bool promotes = has_wide_waves(c, arch) && is_8bit_float(c.dtype) && c.math == Math::strict;
    const std::int64_t each = (std::int64_t{c.tile.m} * c.tile.n + threads - 1) / std::max<std::int64_t>(threads, 1);
    return promotes || family_of(c) == FamilyId::fp64_gemm ? 2 * each : each;  // registers of a sum
}

namespace {
constexpr Shape3 kDoubleTile{16, 8, 1};
}

void leave_out_doubles(ArchSpec& arch) {
    for (WarpTiles& entry : arch.warp_tiles) {
        if (entry.dtypes == DTypePair{DType::fp32, DType::fp32}) std::erase(entry.tiles, kDoubleTile);
    }
}

int buffer_count(const KernelConfig& c) { return std::max(c.stages, c.double_smem_buffer ? 2 : 1); }

std::int64_t block_room_bytes(const KernelConfig& c, const ArchSpec& arch) {
    constexpr std::int64_t kReserved = 1024;  // of every block, for the system
    return std::max<std::int64_t>(0, (arch.shared_bytes + kReserved) / std::max(1, c.blocks_per_unit) - kReserved);
}

std::int64_t block_share_bytes(const KernelConfig& c, const ArchSpec& arch) {
    constexpr std::int64_t kUnit = 1024;
    return block_room_bytes(c, arch) / kUnit * kUnit;
}

int cluster_parts(const KernelConfig& c) { return c.cluster_k ? c.split_k : 1; }

namespace {

// The sums of a block of patch_wgrad on their way out, and its tables of pixels and rows.
std::int64_t patch_wgrad_drain_bytes(const KernelConfig& c) {
    constexpr std::int64_t kWordBytes = 4;
    if (std::min({c.tile.m, c.tile.n, c.tile.k, c.wave.m, c.wave.n, c.wave.k}) < 1) return 0;
    const std::int64_t rows = c.tile.m / c.wave.m, columns = c.tile.n / c.wave.n;
    const std::int64_t words = std::int64_t{c.tile.k} + kPatchWgradDepth + 2 * std::int64_t{c.tile.m};
    return wave_count(c) * columns * (rows + kWgradSumRoom) * kWordBytes + words * kWordBytes;
}

// Operand tiles, as many as are resident at once, and what warpgroups have beside them.
std::int64_t staged_bytes(const KernelConfig& c, const ArchSpec& arch) {
    // Taps that are joined share the rows of A, with a little more.
    const std::int64_t a = (std::int64_t{c.tile.m} + room_lines(c)) * (c.tile.k / joined_taps(c)) * bytes_of(c.dtype);
    const std::int64_t b = std::int64_t{c.tile.n} * c.tile.k * bytes_of(c.dtype_b);
    std::int64_t bytes = 0;
    // Stages that tensor copies fill begin blocks of their swizzle.
    constexpr std::int64_t kStageUnit = 1024;
    const std::int64_t stage = has_wide_waves(c, arch) ? (a + b + kStageUnit - 1) / kStageUnit * kStageUnit : a + b;
    bool overflow = __builtin_mul_overflow(stage, std::int64_t{buffer_count(c)}, &bytes);
    // Warpgroups go on to the next tile while results leave, so these have a place of their own: 64 rows of 128 bytes,
    // twice, for each; and the barriers of the ring. Blocks that have one tile may do without.
    constexpr std::int64_t kStagingBytes = 2 * 64 * 128, kBarrierBytes = 1024;
    if (has_wide_waves(c, arch)) {
        if (c.math == Math::tf32x3)
            overflow = overflow || __builtin_mul_overflow(bytes, std::int64_t{2}, &bytes);  // rests
        const bool one_tile = c.cluster_k || shares_unit(c, arch);
        bytes += (one_tile ? 0 : wave_count(c) * kStagingBytes) + kBarrierBytes;
    }
    return overflow ? kMostBytes : std::min(bytes, kMostBytes);
}

}  // namespace

std::int64_t block_shared_bytes(const KernelConfig& c, const ArchSpec& arch) {
    const FamilyId family = family_of(c);
    if (family == FamilyId::patch_wgrad) return std::max(block_share_bytes(c, arch), patch_wgrad_drain_bytes(c));
    if (family == FamilyId::shifted_wgrad || family == FamilyId::resident_filter_conv) {
        return block_share_bytes(c, arch);
    }
    // No patch has fewer pixels than the tile has rows.
    if (is_patch_conv(family) || family == FamilyId::first_layer_conv) {
        return std::max(block_room_bytes(c, arch), staged_bytes(c, arch));
    }
    if (is_depthwise(family) && has_depthwise_spec(c)) return depthwise_spec(c, arch).shared_bytes;
    return staged_bytes(c, arch);
}

std::int64_t shared_bytes(const KernelConfig& c, const ArchSpec& arch) {
    return bounded_product({block_shared_bytes(c, arch), std::max(1, c.blocks_per_unit)});
}

Axis contiguous_axis(const KernelConfig& c, int operand) {
    if (c.layout == Layout::any) return Axis::open;
    if (c.op == Op::gemm) {
        const bool row = is_row(c.layout, operand);
        if (operand == 0) return row ? Axis::k : Axis::m;
        if (operand == 1) return row ? Axis::n : Axis::k;
        return row ? Axis::n : Axis::m;
    }
    // Depthwise kernels move channels, which are the columns of their tile; their weights have one channel per group.
    if (c.specialization == Specialization::depthwise) return is_weight(c.op, operand) ? Axis::open : Axis::n;
    // Channels-first activations run along positions: rows of x and y, or the reduction of backward weight.
    if (!is_channels_last(c.layout) && !is_weight(c.op, operand)) {
        return c.op == Op::conv_bwd_weight ? Axis::k : operand == 0 || operand == 2 ? Axis::m : Axis::n;
    }
    if (operand == 2) return Axis::n;
    // Channels-last activations and GKYXC weights run along channels: the reduction for both inputs of forward,
    // the reduction (dy) and the columns (w) of backward data, the rows (dy) and columns (x) of backward weight.
    if (c.op == Op::conv_fwd) return Axis::k;
    if (c.op == Op::conv_bwd_data) return operand == 0 ? Axis::k : Axis::n;
    return operand == 0 ? Axis::m : Axis::n;
}

int contiguous_tile_extent(const KernelConfig& c, int operand) {
    // Swapped, the rows of a tile are columns of C.
    const bool swapped = c.op == Op::gemm && c.swap_ab;
    switch (contiguous_axis(c, operand)) {
        case Axis::m: return swapped ? c.tile.n : c.tile.m;
        case Axis::n: return swapped ? c.tile.m : c.tile.n;
        case Axis::k: return c.tile.k;
        case Axis::open: return 0;
    }
    return 0;
}

int vector_width(const KernelConfig& c, int operand) {
    return operand == 0 ? c.vector_a : operand == 1 ? c.vector_b : c.vector_c;
}

void set_vector_width(KernelConfig& c, int operand, int width) {
    (operand == 0 ? c.vector_a : operand == 1 ? c.vector_b : c.vector_c) = width;
}

DType operand_dtype(const KernelConfig& c, int operand) {
    return operand == 0 ? c.dtype : operand == 1 ? c.dtype_b : c.dtype_out;
}

std::int64_t access_bytes(const KernelConfig& c, int operand) {
    return vector_width(c, operand) * bytes_of(operand_dtype(c, operand));
}

const std::vector<Shape3>* warp_tiles_of(const KernelConfig& c, const ArchSpec& arch) {
    if (c.specialization == Specialization::depthwise) {
        const bool has_own = c.dtype == DType::bf16 && c.dtype_b == DType::bf16 && !arch.depthwise_bf16_tiles.empty();
        return has_own ? &arch.depthwise_bf16_tiles : &arch.depthwise_tiles;
    }
    const WarpTiles* entry = arch.find_warp_tiles({c.dtype, c.dtype_b});
    return entry ? &entry->tiles : nullptr;
}

bool tile_is_multiple(const KernelConfig& c) {
    return is_multiple(c.tile.m, std::int64_t{c.wave.m} * c.warp_tile.m) &&
           is_multiple(c.tile.n, std::int64_t{c.wave.n} * c.warp_tile.n) &&
           is_multiple(c.tile.k, std::int64_t{c.wave.k} * c.warp_tile.k);
}

}  // namespace tilewise
