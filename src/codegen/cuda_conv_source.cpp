// SPDX-License-Identifier: MIT
#include "codegen/cuda_conv_source.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "codegen/depthwise_spec.hpp"
#include "codegen/launch_spec.hpp"
#include "config/cuda_arch.hpp"
#include "config/geometry.hpp"
#include "config/halo_first_plan.hpp"
#include "config/halo_tile.hpp"
#include "config/halo_weight_plan.hpp"
#include "config/im2col.hpp"
#include "config/tap_conv_plan.hpp"
#include "config/tap_weight_plan.hpp"
#include "problem/facts.hpp"
#include "problem/types.hpp"

namespace tilewise {
namespace {

// Each family says what its templates do; a config that is none of these has no kernel.
bool copies_asynchronously(Pipeline pipeline) {
    return pipeline == Pipeline::mem || pipeline == Pipeline::comp_async || pipeline == Pipeline::basic_async_v1;
}

// The loops and the arithmetic are those of GEMM. Gathering is what the pipeline does: asynchronous or not.
bool has_gather_template(const KernelConfig& c) {
    constexpr int kWarpgroupRows = 64;
    const bool has_loop = c.pipeline == Pipeline::basic_v1 || c.pipeline == Pipeline::compv3 ||
                          c.pipeline == Pipeline::compv4 || copies_asynchronously(c.pipeline);
    const bool is_async = c.gather == Gather::async;
    const bool wide = c.vector_a > 1 || c.vector_b > 1 || c.vector_c > 1;
    const bool small = c.dtype == DType::fp32 && c.warp_tile.k == 1 && c.warp_tile.m < 32;  // of GEMM only
    return has_loop && !small && is_async == copies_asynchronously(c.pipeline) && c.warp_tile.m != kWarpgroupRows &&
           c.scheduler == Scheduler::intrawave && c.cluster == Shape2{} && c.wave.k == 1 && c.producer_waves == 0 &&
           (c.stream_k == StreamK::off || c.op != Op::conv_bwd_data) && c.num_groups_to_merge == 1 &&
           c.math != Math::tf32x3 && (is_channels_last(c.layout) || !wide) && drains_whole_vectors(c);
}
// Backward weight by patches: the transposed product of 16-bit elements, which ldmatrix can transpose.
bool has_halo_weight_template(const KernelConfig& c) {
    const bool is_16_bit = c.dtype == c.dtype_b && (c.dtype == DType::fp16 || c.dtype == DType::bf16);
    const int vector = static_cast<int>(kHaloChunkBytes / bytes_of(c.dtype));
    return is_16_bit && c.swap_ab && is_channels_last(c.layout) && c.vector_a == vector &&
           (c.vector_b == vector || c.vector_b == 1) && c.warp_tile == Shape3{16, 8, 16} && c.stages >= 2 &&
           (c.two_stage || c.cluster_k) && !c.split_image && !c.explicit_gemm && !c.persistent &&
           c.producer_waves == 0 && c.cluster == Shape2{} && c.ct_filter.rank == 0 && c.ct_stride.rank == 0 &&
           c.ct_dilation.rank == 0 && c.specialization == Specialization::none &&
           (c.num_groups_to_merge == 1 || c.num_groups_to_merge % c.wave.n == 0);
}
// First layers: channels one by one, so that four make a step of the reduction together with their neighbours.
// Results of all taps stay in registers; a line of shared memory is a position's columns.
bool has_tap_weight_template(const KernelConfig& c) {
    constexpr int kMostPositions = 256, kStepPositions = 16, kRows = 64, kMostWaves = 8;  // 64 registers each
    const bool is_16_bit = c.dtype == c.dtype_b && (c.dtype == DType::fp16 || c.dtype == DType::bf16);
    const int vector = static_cast<int>(kHaloChunkBytes / bytes_of(c.dtype)), columns = tap_weight_columns(c);
    // Rows of products are (tap, c), or k.
    const bool swapped = c.tile.m % (kRows * c.wave.m) == 0 && c.wave.n == 1 && c.warp_tile.n == c.tile.n;
    const bool plain = c.tile.m == kRows && c.wave.m == 1 && c.warp_tile.n * c.wave.n == c.tile.n &&
                       (c.warp_tile.n == 3 * kRows || c.warp_tile.n == 3 * kRows / 2);
    // Or strips of 16 channels on mma.sync.
    const bool strips = c.swap_ab && c.warp_tile == Shape3{16, 8, 16} && c.wave.m == 1 && c.wave.n == 4 &&
                        c.tile.n == kRows && c.tile.m % 16 == 0 && c.num_groups_to_merge % c.wave.n == 0;
    const bool wide = c.warp_tile.m == kRows && (c.swap_ab ? swapped : plain) && c.wave.k == 1 &&
                      (wave_count(c) + 1) * c.blocks_per_unit <= kMostWaves;
    const bool positions = c.tile.k <= kMostPositions && c.tile.k % kStepPositions == 0 &&
                           c.tile.k * tap_weight_line_bytes(columns) % 1024 == 0;
    return is_16_bit && is_channels_last(c.layout) && c.vector_a == vector && c.vector_b == vector &&
           c.pipeline == Pipeline::compv6 && (strips || wide) && columns <= 2 * kRows && positions &&
           (c.two_stage || c.cluster_k) && !c.split_image && !c.explicit_gemm && !c.persistent &&
           c.producer_waves == 1 && c.cluster == Shape2{} && c.ct_filter.rank == 0 && c.ct_stride.rank == 0 &&
           c.ct_dilation.rank == 0 && c.specialization == Specialization::none && c.stream_k == StreamK::off;
}

// Weights of 3x3 filters stay in shared memory; strides are compiled in.
bool has_tap_conv_template(const KernelConfig& c) {
    constexpr int kRows = 64, kMostWaves = 4, kMostSums = 128, kLine = 64, kMostStride = 2, kMostSharers = 4;
    const bool is_16_bit =
        c.dtype == c.dtype_b && c.dtype == c.dtype_out && (c.dtype == DType::fp16 || c.dtype == DType::bf16);
    const int vector = static_cast<int>(kHaloChunkBytes / bytes_of(c.dtype));
    const auto all = [](const Extents& extents, std::int64_t least, std::int64_t most) {
        return extents.rank == 2 && std::min(extents[0], extents[1]) >= least &&
               std::max(extents[0], extents[1]) <= most;
    };
    if (!all(c.ct_filter, kTapConvFilter, kTapConvFilter) || !all(c.ct_stride, 1, kMostStride) ||
        c.ct_dilation.rank != 0 || c.ndim != 2) {
        return false;
    }
    const std::int64_t classes = c.op == Op::conv_bwd_data ? product(c.ct_stride) : 1;
    const bool sums = c.tile.m % (kRows * c.wave.m) == 0 && c.wave.m <= kMostWaves &&
                      c.tile.m / (kRows * c.wave.m) * classes * c.tile.n / 2 <= kMostSums;
    return is_16_bit && is_channels_last(c.layout) && c.vector_a == vector && c.vector_b == vector &&
           c.vector_c == vector && c.pipeline == Pipeline::compv6 && c.epilogue == Epilogue::cshuffle && sums &&
           c.tile.k == kLine && c.wave.n == 1 && c.wave.k == 1 && c.warp_tile.n == c.tile.n && c.split_k == 1 &&
           c.blocks_per_unit == 1 && c.producer_waves == 1 && !c.swap_ab && !c.cluster_k && !c.two_stage &&
           !c.split_image && !c.explicit_gemm && !c.persistent && c.cluster.m == 1 && c.cluster.n <= kMostSharers &&
           c.specialization == Specialization::none && c.stream_k == StreamK::off;
}

bool has_halo_first_template(const KernelConfig& c) {
    const bool is_16_bit = c.dtype == c.dtype_b && (c.dtype == DType::fp16 || c.dtype == DType::bf16);
    return is_16_bit && is_channels_last(c.layout) && c.warp_tile == Shape3{16, 8, 16} && c.wave.n == 1 &&
           c.wave.k == 1 && c.tile.n % 16 == 0 && c.vector_b == 1 && c.vector_c * bytes_of(c.dtype_out) >= 4 &&
           c.epilogue == Epilogue::cshuffle && c.persistent && c.split_k == 1 && !c.split_image && !c.explicit_gemm &&
           c.num_groups_to_merge == 1 && c.producer_waves == 0 && c.cluster == Shape2{} && !c.swap_ab &&
           c.specialization == Specialization::none && c.ct_filter.rank == 0 && c.ct_stride.rank == 0 &&
           c.ct_dilation.rank == 0;
}
// Patches of pixels in a ring of buffers, or in one; elements of 16 bits where ldmatrix has to turn the weights round.
bool has_halo_template(const KernelConfig& c) {
    const bool plain = c.scheduler == Scheduler::intrawave && c.cluster == Shape2{} && c.wave.k == 1 &&
                       c.producer_waves == 0 && c.split_k == 1 && !c.explicit_gemm && !c.split_image &&
                       (c.specialization == Specialization::none || shares_halo_rows(c)) && c.ct_filter.rank == 0 &&
                       c.ct_stride.rank == 0 && c.ct_dilation.rank == 0;
    constexpr int kChunkBytes = 16, kStepRows = 16, kStepColumns = 8;
    const std::int64_t bytes = bytes_of(c.dtype);
    // Single elements are for the input of first layers.
    const bool has_stores =
        c.vector_c * bytes_of(c.dtype_out) >= 4 || (c.op == Op::conv_bwd_data && c.vector_c == 1 && c.vector_b == 1);
    const bool fits = c.dtype == c.dtype_b && bytes <= 2 && (c.op == Op::conv_fwd || bytes == 2) &&
                      c.warp_tile.m == kStepRows && c.warp_tile.n == kStepColumns &&
                      c.vector_a * bytes == kChunkBytes && has_stores && c.epilogue == Epilogue::cshuffle;
    if (is_halo_weight(c)) return has_halo_weight_template(c);
    if (is_tap_weight(c)) return has_tap_weight_template(c);
    if (is_tap_conv(c)) return has_tap_conv_template(c);
    if (is_halo_first(c)) return has_halo_first_template(c);
    // With one buffer only rows of 3 x 3 taps have proved right on a GPU.
    const bool has_loop = c.stages > 1 || c.specialization == Specialization::filter_3x3;
    // Boxes of pixels need the copy engine of Hopper and later.
    constexpr int kFirstWithBoxes = 9;
    const auto arch = parse_cuda_arch(c.arch);
    const bool has_copies = copies_asynchronously(c.pipeline) ||
                            (stages_halo_boxes(c) && c.stages > 1 && arch && arch->major >= kFirstWithBoxes);
    return has_copies && has_loop && plain && fits && c.persistent && is_channels_last(c.layout);
}

// The main loop of the warpgroup GEMM on other operands; those of 8 bits must lie along the reduction, as forward's do.
bool has_tensor_template(const KernelConfig& c) {
    constexpr int kWarpgroupRows = 64, kLineBytes = 128, kAccessBytes = 16, kMostBoxLines = 256;
    const std::int64_t bytes = bytes_of(c.dtype);
    const auto is_whole = [&](int vector) { return vector * bytes == kAccessBytes; };
    const bool columns_along_k = c.op == Op::conv_fwd;
    // A stage of several taps along w.
    const bool joined = joined_taps(c) > 1;
    // Lines may be half as long where operands are gathered along them.
    const bool walks = c.specialization != Specialization::filter_1x1_stride1;
    const bool depth = c.tile.k * bytes == joined_taps(c) * depth_bytes(c) &&
                       (c.op != Op::conv_bwd_weight || (!joined && depth_bytes(c) == kLineBytes)) &&
                       ((walks && bytes == 2) || c.tile.k * bytes == kLineBytes);
    const std::int64_t column_line = walks ? column_line_bytes(c) : kLineBytes;
    const bool lines = depth && (columns_along_k || c.tile.n * bytes % column_line == 0) &&
                       std::max(c.tile.m / c.cluster.n, c.tile.n / c.cluster.m) <= kMostBoxLines;
    // What is gathered by walks over taps is copied for one block alone.
    const bool alone = !walks || (c.op == Op::conv_bwd_weight ? c.cluster.m : c.cluster.n) == 1;
    const bool specialised = c.specialization == Specialization::none || !walks;
    // Blocks that share tiles share out steps of which every tile has as many.
    const bool streams = c.stream_k == StreamK::off ||
                         (c.op != Op::conv_bwd_data && c.cluster == Shape2{} && c.pipeline == Pipeline::compv6);
    // Blocks that add up in a cluster put their sums in the place of the stages; rows of these are a little longer.
    constexpr std::int64_t kLongerRows = 8, kSumBytes = 4;
    const bool fits =
        (c.tile.n + kLongerRows) * c.tile.m * kSumBytes <= std::int64_t{c.stages} * (c.tile.m + c.tile.n) * kLineBytes;
    const bool adds_up = !c.cluster_k || (fits && !joined && depth_bytes(c) == kLineBytes &&
                                          c.op != Op::conv_bwd_data && c.pipeline == Pipeline::compv6);
    const bool compiled_in = c.ct_filter.rank != 0 || c.ct_stride.rank != 0 || c.ct_dilation.rank != 0;
    return (c.pipeline == Pipeline::compv5 || c.pipeline == Pipeline::compv6) && c.warp_tile.m == kWarpgroupRows &&
           is_channels_last(c.layout) && c.epilogue == Epilogue::cshuffle && is_whole(c.vector_a) &&
           is_whole(c.vector_b) && lines && alone && specialised && !compiled_in && streams && adds_up &&
           c.producer_waves == 1 && c.wave.m <= most_warpgroups(c) && c.wave.n == 1 && c.wave.k == 1 &&
           (c.pipeline == Pipeline::compv6 || c.wave.m == 2) && c.warp_tile.n == c.tile.n &&
           (bytes == 2 || (bytes == 1 && columns_along_k)) && !c.swap_ab && !c.explicit_gemm && !c.split_image &&
           !c.two_stage && c.num_groups_to_merge == 1;
}

std::string_view direction_of(Op op) {
    return op == Op::conv_fwd ? "forward" : op == Op::conv_bwd_data ? "backward_data" : "backward_weight";
}

// Three extents, outermost first, those of dimensions that the kernel lacks 1; 0 for what is only known at launch.
std::string extent_line(std::string_view name, const Extents& extents, int ndim) {
    std::string values;
    for (int i = 0; i < kMaxSpatialDims; ++i) {
        const int d = i - (kMaxSpatialDims - ndim);
        values += fmt::format("{}{}", i == 0 ? "" : ", ", d < 0 ? 1 : extents.rank == 0 ? 0 : extents[d]);
    }
    return fmt::format("    static constexpr int {}[3] = {{{}}};\n", name, values);
}

}  // namespace

bool has_cuda_conv_template(const KernelConfig& c) {
    switch (conv_family(c)) {
        case ConvFamily::gather: return has_gather_template(c);
        case ConvFamily::halo: return has_halo_template(c);
        case ConvFamily::tensor: return has_tensor_template(c);
        case ConvFamily::depthwise: return has_depthwise_template(c);
    }
    return false;
}

std::string cuda_conv_template(const KernelConfig& c) {
    switch (conv_family(c)) {
        case ConvFamily::gather: return c.dtype == DType::fp32 && c.warp_tile.k == 1 ? "simt_conv" : "mma_conv";
        case ConvFamily::halo:
            if (is_tap_weight(c)) return "tap_weight";
            if (is_tap_conv(c)) return "tap_conv";
            return is_halo_weight(c)      ? "halo_weight"
                   : is_halo_first(c)     ? "halo_first"
                   : stages_halo_boxes(c) ? "halo_box_conv"
                                          : "halo_conv";
        case ConvFamily::tensor: return "tensor_conv";
        case ConvFamily::depthwise: return "depthwise_conv";
    }
    return {};
}

std::string cuda_conv_lines(const KernelConfig& c) {
    std::string text =
        fmt::format("    static constexpr auto direction = tilewise::Direction::{};\n", direction_of(c.op));
    text += fmt::format("    static constexpr int ndim = {}, merge = {}, blocks_per_unit = {};\n", c.ndim,
                        c.num_groups_to_merge, c.blocks_per_unit);
    text += fmt::format("    static constexpr bool channels_last = {}, two_stage = {}, split_image = {};\n",
                        is_channels_last(c.layout), c.two_stage, c.split_image);
    text += fmt::format("    static constexpr bool explicit_gemm = {}, filter_3x3 = {}, filter_1x1 = {};\n",
                        c.explicit_gemm, c.specialization == Specialization::filter_3x3,
                        c.specialization == Specialization::filter_1x1_stride1);
    text += extent_line("ct_filter", c.ct_filter, c.ndim) + extent_line("ct_stride", c.ct_stride, c.ndim) +
            extent_line("ct_dilation", c.ct_dilation, c.ndim);
    if (conv_family(c) == ConvFamily::depthwise) text += depthwise_lines(c);
    return text;
}

}  // namespace tilewise
