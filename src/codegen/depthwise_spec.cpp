// SPDX-License-Identifier: MIT
#include "codegen/depthwise_spec.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "config/slab_plan.hpp"
#include "kernels/common/to_int.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

constexpr int kLanes = 32, kFloatBytes = 4, kBandChannels = 16;

int lanes_along(const KernelConfig& c) {
    const int across = c.vector_a > 0 ? c.warp_tile.n / c.vector_a : 0;  // lanes side by side along channels
    return across > 0 && kLanes % across == 0 && across * c.vector_a == c.warp_tile.n ? kLanes / across : 0;
}

std::int64_t extent(const Extents& extents, int from_last) {
    return from_last < extents.rank ? extents[extents.rank - 1 - from_last] : 1;
}

DepthwiseKind kind_of(const KernelConfig& c) {
    if (is_slab(c)) return DepthwiseKind::slab;
    if (c.warp_tile.k > 1) return c.tile.n == kBandChannels ? DepthwiseKind::band : DepthwiseKind::diagonal;
    return c.ct_filter.rank > 0 ? DepthwiseKind::strips : DepthwiseKind::any;
}

// Inputs that a line of the patch meets; their places are bits of a word.
std::int64_t line_inputs(const KernelConfig& c, int width) {
    const std::int64_t stride = extent(c.ct_stride, 0), reach = (extent(c.ct_filter, 0) - 1) * extent(c.ct_dilation, 0);
    return c.op == Op::conv_bwd_data ? reach / stride + (width - 1) / stride + 1 : (width - 1) * stride + reach + 1;
}

// Rows of outputs that a line of inputs can meet.
std::int64_t window_rows(const KernelConfig& c) {
    const std::int64_t stride = extent(c.ct_stride, 1), reach = (extent(c.ct_filter, 1) - 1) * extent(c.ct_dilation, 1);
    return c.op == Op::conv_bwd_data ? (reach + stride) / stride * stride : reach / stride + 1;
}

bool has_strips_template(const KernelConfig& c) {
    if (c.ct_stride.rank == 0 || !is_channels_last(c.layout)) return false;
    const bool same_vectors = c.op != Op::conv_bwd_weight || c.vector_b == c.vector_a;
    const int along = lanes_along(c);
    if (along == 0 || c.warp_tile.m % along != 0 || c.tile.n != c.warp_tile.n || !same_vectors) return false;
    const int width = c.warp_tile.m / along, height = c.tile.m / (c.wave.m * c.warp_tile.m);
    if (c.ndim == 1 && height != 1) return false;
    constexpr std::int64_t kMaskBits = 32, kMostSums = 128;  // of a thread
    if (line_inputs(c, width) > kMaskBits) return false;
    const bool whole_turns = width % extent(c.ct_stride, 0) == 0 && height % extent(c.ct_stride, 1) == 0;
    if (c.op == Op::conv_bwd_data && !whole_turns) return false;
    const std::int64_t sums = c.op == Op::conv_bwd_weight ? product(c.ct_filter) : width * window_rows(c);
    return sums * c.vector_a <= kMostSums;
}

// The shape of kernels/cuda/band_shape.hpp.
constexpr Shape3 kBandWave = {4, 2, 1}, kBandWarp = {16, 8, 16};
constexpr int kBandInputs = 16, kBandVector = 8;
constexpr std::int64_t kBandLineBytes = 8192, kBandOtherBytes = 25600, kBandWeightSharedBytes = 99328;

bool has_band_template(const KernelConfig& c) {
    if (c.ct_filter.rank != 2 || c.ct_stride.rank != 2 || !is_channels_last(c.layout)) return false;
    const auto is_one = [](const Extents& e) { return e.rank == 0 || (e[0] == 1 && e[1] == 1); };
    const bool weight = c.op == Op::conv_bwd_weight;
    const bool types = bytes_of(c.dtype) == 2 && c.dtype_b == c.dtype && (weight || c.dtype_out == c.dtype);
    const bool shape =
        c.wave == kBandWave && c.warp_tile == kBandWarp && c.tile.n == kBandChannels && c.tile.k == kBandWarp.k;
    constexpr std::int64_t kMostRows = 9;  // whose sums and band matrices registers hold
    return types && shape && is_one(c.ct_stride) && is_one(c.ct_dilation) && c.ct_filter[0] <= kMostRows &&
           c.ct_filter[1] + kBandWarp.n - 1 <= kBandInputs && c.vector_a == kBandVector &&
           (weight ? c.vector_b : c.vector_c) == kBandVector;
}

// The shape of kernels/cuda/diagonal_shape.hpp.
constexpr int kDiagonalVector = 8, kDiagonalOwn = 16;  // channels of a copy; a warp has some of so many

bool has_diagonal_template(const KernelConfig& c) {
    if (c.ct_filter.rank < 2 || c.ct_stride.rank != c.ct_filter.rank || !is_channels_last(c.layout)) return false;
    const bool weight = c.op == Op::conv_bwd_weight;
    const bool types = bytes_of(c.dtype) == 2 && c.dtype_b == c.dtype && (weight || c.dtype_out == c.dtype);
    const bool vectors = c.vector_a == kDiagonalVector && (weight ? c.vector_b : c.vector_c) == kDiagonalVector;
    const bool shape = c.warp_tile == kBandWarp && c.tile.k == kBandWarp.k && c.wave.k == 1 &&
                       c.tile.n % (c.wave.n * kDiagonalOwn) == 0 && c.tile.m % (c.wave.m * c.warp_tile.m) == 0;
    for (int d = 0; d < c.ct_dilation.rank; ++d) {
        if (c.ct_dilation[d] != 1) return false;
    }
    const std::int64_t stride = extent(c.ct_stride, 0);
    constexpr std::int64_t kMostColumns = 5, kMostStride = 2;
    const bool strides = stride == extent(c.ct_stride, 1) && stride <= kMostStride && extent(c.ct_stride, 2) == 1 &&
                         (stride == 1 || c.op != Op::conv_bwd_data);
    // Registers that hold what every tap needs, of all the warp's channels.
    const std::int64_t groups = c.tile.n / c.wave.n / 8, plane = extent(c.ct_filter, 0) * extent(c.ct_filter, 1);
    const std::int64_t pairs = (extent(c.ct_filter, 0) + 1) / 2 * extent(c.ct_filter, 1);
    constexpr std::int64_t kMostHeld = 108;
    const bool held = groups * (weight ? pairs * 4 : plane * extent(c.ct_filter, 2)) <= kMostHeld;
    return types && vectors && shape && strides && held && extent(c.ct_filter, 0) <= kMostColumns;
}

// The more lines are under way, the later the first is there; so few, as far as the block's share of shared memory goes.
void add_diagonal_ring(DepthwiseSpec& spec, const KernelConfig& c) {
    constexpr std::int64_t kUnitBytes = 228 * 1024, kReserved = 1024, kBytes = 2, kMostStages = 4;
    const bool weight = c.op == Op::conv_bwd_weight;
    const std::int64_t stride = extent(c.ct_stride, 0), planes = weight ? 1 : extent(c.ct_filter, 2);
    const std::int64_t outputs = std::int64_t{c.wave.m} * c.warp_tile.m, pitch = c.tile.n * kBytes + 16;
    spec.line_slots = to_int(outputs * stride + outputs / 4);  // a filter's width more for each frame
    const std::int64_t stage = (planes * spec.line_slots + (weight ? outputs : 0)) * pitch;
    // Results on their way out; or the sums of a plane of taps of every warp, in the place of the ring.
    const std::int64_t waves = std::int64_t{c.wave.m} * c.wave.n;
    const std::int64_t results = weight ? 0 : waves * c.warp_tile.m * (c.tile.n / c.wave.n * kBytes + 16);
    const std::int64_t sums =
        weight ? c.wave.m * extent(c.ct_filter, 0) * extent(c.ct_filter, 1) * c.tile.n * kFloatBytes : 0;
    const std::int64_t share = kUnitBytes / std::max(1, c.blocks_per_unit) - kReserved - results;
    spec.ring_stages = to_int(std::clamp<std::int64_t>(share / stage, 2, kMostStages));
    spec.shared_bytes = std::max(spec.ring_stages * stage + results, sums);
}

bool has_any_template(const KernelConfig& c) {
    if (c.ct_stride.rank > 0 || c.ct_dilation.rank > 0) return false;
    return c.op == Op::conv_bwd_weight ? c.vector_a == 1 && c.vector_b == 1
                                       : c.vector_a == 1 || is_channels_last(c.layout);
}

// The shape of kernels/cuda/slab_shape.hpp.
bool has_slab_template(const KernelConfig& c) {
    constexpr int kCopied = 8, kMostOwnRows = 2;  // channels of a copy
    if (c.op == Op::conv_bwd_weight || c.ct_filter.rank != 2 || c.ct_stride.rank != 2 || !is_channels_last(c.layout)) {
        return false;
    }
    const bool types = bytes_of(c.dtype) == 2 && c.dtype_b == c.dtype && c.dtype_out == c.dtype;
    const bool dilated = c.ct_dilation.rank > 0 && (c.ct_dilation[0] != 1 || c.ct_dilation[1] != 1);
    const int vector = slab_vector(c), own_rows = slab_own_rows(c);
    const bool shape = c.tile.n == c.warp_tile.n && c.tile.n % kCopied == 0 && c.warp_tile.k == 1 &&
                       c.warp_tile.m * c.warp_tile.n == vector * kLanes && kLanes % c.warp_tile.m == 0 &&
                       (vector == 2 || vector == 4 || vector == 8) && c.tile.m == c.wave.m * c.warp_tile.m * own_rows &&
                       own_rows <= kMostOwnRows;
    const bool strides =
        c.ct_stride[0] == c.ct_stride[1] && (c.ct_stride[0] == 1 || (c.ct_stride[0] == 2 && c.op == Op::conv_fwd));
    constexpr std::int64_t kMostHeld = 108;  // weights of a thread
    return types && !dilated && shape && strides && c.vector_a == kCopied && c.vector_c == kCopied &&
           product(c.ct_filter) * vector <= kMostHeld;
}

// Registers of a thread are what its sums, one line of inputs, the next line and the weights it holds need.
int resident_blocks(const KernelConfig& c, const DepthwiseSpec& spec) {
    constexpr int kRegisters = 65536, kMostHeld = 20, kMostFloats = 48, kOther = 28, kMost = 8;
    const std::int64_t line = line_inputs(c, spec.strip_width) * c.vector_a, size = bytes_of(c.dtype);
    const std::int64_t rows = window_rows(c) * spec.strip_width * c.vector_a, taps = product(c.ct_filter) * c.vector_a;
    const std::int64_t planes = c.ct_filter.rank > 2 ? c.ct_filter[0] : 1;
    std::int64_t registers = kOther + line + planes * line * size / kFloatBytes;
    if (c.op == Op::conv_bwd_weight) {
        registers += taps + (rows <= kMostFloats ? rows : rows * size / kFloatBytes);
    } else {
        registers += rows + (taps <= kMostHeld ? taps : 4 * c.vector_a);
    }
    return to_int(std::clamp<std::int64_t>(kRegisters / (registers * c.wave.m * kLanes), 1, kMost));
}

}  // namespace

bool has_depthwise_template(const KernelConfig& c) {
    const DepthwiseKind kind = kind_of(c);
    const bool slab = kind == DepthwiseKind::slab;
    const bool plain = (c.pipeline == Pipeline::basic_v1 || slab) && c.scheduler == Scheduler::intrawave &&
                       c.epilogue == Epilogue::direct && c.gather == Gather::plain && c.math == Math::strict;
    const bool asks_more = c.persistent || c.two_stage || c.split_image || c.cluster != Shape2{} ||
                           c.producer_waves > 0 || c.stages > 1 || c.double_smem_buffer || c.swap_ab;
    if (!plain || asks_more || (c.split_k > 1 && c.op != Op::conv_bwd_weight)) return false;
    const bool on_matrix_units = kind == DepthwiseKind::band || kind == DepthwiseKind::diagonal;
    if ((c.blocks_per_unit != 1 && !on_matrix_units && !slab) || (c.cluster_k && !on_matrix_units)) return false;
    if (kind == DepthwiseKind::band) return has_band_template(c);
    if (kind == DepthwiseKind::diagonal) return has_diagonal_template(c);
    if (c.wave.n != 1 || c.wave.k != 1) return false;
    if (slab) return has_slab_template(c);
    return kind == DepthwiseKind::strips ? has_strips_template(c) : has_any_template(c);
}

DepthwiseSpec depthwise_spec(const KernelConfig& c) {
    DepthwiseSpec spec;
    spec.kind = kind_of(c);
    spec.strip_height = c.tile.m / std::max(1, c.wave.m * c.warp_tile.m);
    const std::int64_t threads = std::int64_t{c.wave.m} * kLanes;
    if (spec.kind == DepthwiseKind::band) {
        const bool weight = c.op == Op::conv_bwd_weight;
        constexpr int kLines = 4, kResident = 2;  // more lines under way take longer until the first is there
        spec.ring_stages = kLines;
        spec.resident_blocks = std::max(kResident, c.blocks_per_unit);
        spec.strip_width = kBandWarp.n;
        spec.strips = kBandWarp.m;
        spec.shared_bytes = weight ? kBandWeightSharedBytes : kBandOtherBytes + spec.ring_stages * kBandLineBytes;
        return spec;
    }
    if (spec.kind == DepthwiseKind::diagonal) {
        spec.resident_blocks = std::max(1, c.blocks_per_unit);
        spec.strip_width = c.wave.m * c.warp_tile.m;
        spec.strips = 1;
        add_diagonal_ring(spec, c);
        return spec;
    }
    if (spec.kind == DepthwiseKind::slab) {
        spec.resident_blocks = std::max(1, c.blocks_per_unit);
        spec.shared_bytes = slab_shared_bytes(c);
        return spec;
    }
    if (spec.kind == DepthwiseKind::any) {
        if (c.op == Op::conv_bwd_weight) spec.shared_bytes = threads * kAnyWeightTaps * kFloatBytes;
        return spec;
    }
    const int along = lanes_along(c);
    spec.strip_width = c.warp_tile.m / along;
    spec.strips = c.wave.m * along;
    spec.resident_blocks = resident_blocks(c, spec);
    // Sums of a row of taps; or the weights, and a line of sums for every thread where there is an epilogue.
    spec.shared_bytes = c.op == Op::conv_bwd_weight
                            ? threads * c.vector_a * extent(c.ct_filter, 0) * kFloatBytes
                            : (product(c.ct_filter) * c.tile.n + threads * spec.strip_width * c.vector_a) * kFloatBytes;
    return spec;
}

std::string depthwise_lines(const KernelConfig& c) {
    const DepthwiseSpec spec = depthwise_spec(c);
    std::string lines = fmt::format("    static constexpr int resident_blocks = {};\n", spec.resident_blocks);
    if (spec.ring_stages > 0) {
        lines += fmt::format("    static constexpr int line_slots = {}, ring_stages = {};\n", spec.line_slots,
                             spec.ring_stages);
    }
    return lines;
}

}  // namespace tilewise
