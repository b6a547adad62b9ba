// SPDX-License-Identifier: MIT
#include "config/depthwise_spec.hpp"

#include <algorithm>

#include "config/family_id.hpp"
#include "config/geometry.hpp"
#include "kernels/common/to_int.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

constexpr int kFloatBytes = 4;

// The shape of kernels/cuda/depthwise_toeplitz/toeplitz_shape.hpp.
constexpr std::int64_t kToeplitzLineBytes = 8192, kToeplitzOtherBytes = 25600, kToeplitzWeightSharedBytes = 99328;

// The more lines are under way, the later the first is there; so few, as far as the block's share of shared memory goes.
void add_diagonal_ring(DepthwiseSpec& spec, const KernelConfig& c) {
    constexpr std::int64_t kUnitBytes = 228 * 1024, kReserved = 1024, kBytes = 2, kMostStages = 4;
    const bool weight = c.op == Op::conv_bwd_weight;
    const std::int64_t stride = extent_from_last(c.ct_stride, 0),
                       planes = weight ? 1 : extent_from_last(c.ct_filter, 2);
    const std::int64_t outputs = std::int64_t{c.wave.m} * c.warp_tile.m, pitch = c.tile.n * kBytes + 16;
    spec.line_slots = to_int(outputs * stride + outputs / 4);  // a filter's width more for each frame
    const std::int64_t stage = (planes * spec.line_slots + (weight ? outputs : 0)) * pitch;
    // Results on their way out; or the sums of a plane of taps of every warp, in the place of the ring.
    const std::int64_t waves = std::int64_t{c.wave.m} * c.wave.n;
    const std::int64_t results = weight ? 0 : waves * c.warp_tile.m * (c.tile.n / c.wave.n * kBytes + 16);
    const std::int64_t sums =
        weight ? c.wave.m * extent_from_last(c.ct_filter, 0) * extent_from_last(c.ct_filter, 1) * c.tile.n * kFloatBytes
               : 0;
    const std::int64_t share = kUnitBytes / std::max(1, c.blocks_per_unit) - kReserved - results;
    spec.ring_stages = to_int(std::clamp<std::int64_t>(share / stage, 2, kMostStages));
    spec.shared_bytes = std::max(spec.ring_stages * stage + results, sums);
}

bool is_countable(const Extents& extents) {
    constexpr std::int64_t kMost = 1 << 10;
    for (int d = 0; d < extents.rank; ++d) {
        if (extents[d] < 1 || extents[d] > kMost) return false;
    }
    return true;
}

}  // namespace

bool has_depthwise_spec(const KernelConfig& c) {
    constexpr int kMostExtent = 1 << 16, kMostWaves = 1 << 10, kMostVector = 64;
    return tile_is_multiple(c) && c.tile.m <= kMostExtent && c.tile.n <= kMostExtent && c.wave.m > 0 &&
           c.wave.m <= kMostWaves && c.wave.n > 0 && c.wave.n <= kMostWaves && c.vector_a > 0 &&
           c.vector_a <= kMostVector && is_countable(c.ct_filter) && is_countable(c.ct_stride) &&
           is_countable(c.ct_dilation);
}

std::int64_t slice_shared_bytes(const KernelConfig& c) {
    constexpr std::int64_t kUnitBytes = 228 * 1024, kReserved = 1024, kUnit = 128;
    const std::int64_t share = kUnitBytes / std::max(1, c.blocks_per_unit) - kReserved;
    return std::max<std::int64_t>(0, share) / kUnit * kUnit;
}

int strip_lanes_along(const KernelConfig& c, const ArchSpec& arch) {
    const int across = c.vector_a > 0 ? c.warp_tile.n / c.vector_a : 0;  // lanes side by side along channels
    return across > 0 && arch.wave_size % across == 0 && across * c.vector_a == c.warp_tile.n ? arch.wave_size / across
                                                                                              : 0;
}

std::int64_t extent_from_last(const Extents& extents, int from_last) {
    return from_last < extents.rank ? extents[extents.rank - 1 - from_last] : 1;
}

std::int64_t strip_line_inputs(const KernelConfig& c, int width) {
    const std::int64_t stride = extent_from_last(c.ct_stride, 0),
                       reach = (extent_from_last(c.ct_filter, 0) - 1) * extent_from_last(c.ct_dilation, 0);
    return c.op == Op::conv_bwd_data ? reach / stride + (width - 1) / stride + 1 : (width - 1) * stride + reach + 1;
}

std::int64_t strip_window_rows(const KernelConfig& c) {
    const std::int64_t stride = extent_from_last(c.ct_stride, 1),
                       reach = (extent_from_last(c.ct_filter, 1) - 1) * extent_from_last(c.ct_dilation, 1);
    return c.op == Op::conv_bwd_data ? (reach + stride) / stride * stride : reach / stride + 1;
}

namespace {

// Registers of a thread are what its sums, one line of inputs, the next line and the weights it holds need.
int resident_blocks(const KernelConfig& c, const DepthwiseSpec& spec, std::int64_t threads) {
    constexpr int kRegisters = 65536, kMostHeld = 20, kMostFloats = 48, kOther = 28, kMost = 8;
    const std::int64_t line = strip_line_inputs(c, spec.strip_width) * c.vector_a, size = bytes_of(c.dtype);
    const std::int64_t rows = strip_window_rows(c) * spec.strip_width * c.vector_a,
                       taps = product(c.ct_filter) * c.vector_a;
    const std::int64_t planes = c.ct_filter.rank > 2 ? c.ct_filter[0] : 1;
    std::int64_t registers = kOther + line + planes * line * size / kFloatBytes;
    if (c.op == Op::conv_bwd_weight) {
        registers += taps + (rows <= kMostFloats ? rows : rows * size / kFloatBytes);
    } else {
        registers += rows + (taps <= kMostHeld ? taps : 4 * c.vector_a);
    }
    return to_int(std::clamp<std::int64_t>(kRegisters / (registers * threads), 1, kMost));
}

}  // namespace

DepthwiseSpec depthwise_spec(const KernelConfig& c, const ArchSpec& arch) {
    DepthwiseSpec spec;
    const FamilyId family = family_of(c);
    spec.strip_height = c.tile.m / std::max(1, c.wave.m * c.warp_tile.m);
    const std::int64_t threads = std::int64_t{c.wave.m} * arch.wave_size;
    if (family == FamilyId::depthwise_toeplitz) {
        const bool weight = c.op == Op::conv_bwd_weight;
        constexpr int kLines = 4, kResident = 2;  // more lines under way take longer until the first is there
        spec.ring_stages = kLines;
        spec.resident_blocks = std::max(kResident, c.blocks_per_unit);
        spec.strip_width = kToeplitzWarp.n;
        spec.strips = kToeplitzWarp.m;
        spec.shared_bytes =
            weight ? kToeplitzWeightSharedBytes : kToeplitzOtherBytes + spec.ring_stages * kToeplitzLineBytes;
        return spec;
    }
    if (family == FamilyId::depthwise_block_diagonal) {
        spec.resident_blocks = std::max(1, c.blocks_per_unit);
        spec.strip_width = c.wave.m * c.warp_tile.m;
        spec.strips = 1;
        add_diagonal_ring(spec, c);
        return spec;
    }
    if (family == FamilyId::depthwise_channel_slice) {
        spec.resident_blocks = std::max(1, c.blocks_per_unit);
        const std::int64_t weights = product(c.ct_filter) * c.tile.n * kFloatBytes;  // which every slice has beside it
        spec.shared_bytes = std::max(slice_shared_bytes(c), weights);
        return spec;
    }
    if (family == FamilyId::depthwise_any) {
        if (c.op == Op::conv_bwd_weight) spec.shared_bytes = threads * kAnyWeightTaps * kFloatBytes;
        return spec;
    }
    const int along = strip_lanes_along(c, arch);
    spec.strip_width = along > 0 ? c.warp_tile.m / along : 0;
    spec.strips = c.wave.m * along;
    if (spec.strip_width > 0) spec.resident_blocks = resident_blocks(c, spec, threads);
    // Sums of a row of taps; or the weights, and a line of sums for every thread where there is an epilogue.
    spec.shared_bytes = c.op == Op::conv_bwd_weight
                            ? threads * c.vector_a * extent_from_last(c.ct_filter, 0) * kFloatBytes
                            : (product(c.ct_filter) * c.tile.n + threads * spec.strip_width * c.vector_a) * kFloatBytes;
    return spec;
}

}  // namespace tilewise
