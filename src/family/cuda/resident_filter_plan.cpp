// SPDX-License-Identifier: MIT
#include "family/cuda/resident_filter_plan.hpp"

#include <algorithm>

#include "base/rounding.hpp"
#include "config/geometry.hpp"
#include "config/rule_groups.hpp"
#include "family/cuda/patch_wgrad_plan.hpp"
#include "kernels/common/to_int.hpp"
#include "problem/facts.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {
namespace {

constexpr std::int64_t kRowsOfProduct = 64, kSwizzleBlock = 1024, kTaps = kResidentFilterTaps * kResidentFilterTaps;
constexpr int kFullBytes = resident_filter_line_bytes(kResidentFilterFullSteps);

bool refuses_problem(const KernelConv& conv, Rejected* out) {
    constexpr std::int64_t kChunk = 8;  // of channels that are of one group
    if (conv.c % kChunk != 0 || conv.k % kChunk != 0) {
        return refuse(out, TILEWISE_TEXT("groups of {} to {} channels", conv.c, conv.k),
                      TILEWISE_TEXT("multiples of {}", kChunk));
    }
    // The copy engine's bounding box may be larger or smaller than an image by 127 pixels.
    constexpr std::int64_t kMostPad = 50;
    for (int d = 1; d < kMaxKernelDims; ++d) {
        if (conv.dilation[d] != 1) {
            return refuse(out, TILEWISE_TEXT("dilation {}", conv.dilation[d]), TILEWISE_TEXT("1"));
        }
        if (conv.pad[d] > kMostPad || conv.out[d] * conv.stride[d] > conv.in[d] + 2 * kMostPad) {
            return refuse(
                out, TILEWISE_TEXT("a pad of {} and {} results of {} pixels", conv.pad[d], conv.out[d], conv.in[d]),
                TILEWISE_TEXT("a pad of at most {} on either side", kMostPad));
        }
    }
    return false;
}

// Positions along an axis, and how far before the image they begin.
void set_axis(ResidentFilterConvArgs& s, const KernelConv& conv, bool backward, int d) {
    const Index stride = conv.stride[d], pad = conv.pad[d], reach = (kResidentFilterTaps - 1) / stride;
    // Zeros that every walk begins with, and positions up to the last pixel.
    Index results = conv.out[d], begin = pad, zeros = ceil_div(std::max<Index>(0, pad - stride + 1), stride);
    Index pixels = (conv.in[d] - 1 + pad) / stride + 1;
    if (backward) {
        results = (conv.in[d] - 1 + pad % stride) / stride + 1;
        begin = zeros = reach - pad / stride;
        pixels = conv.out[d] + begin;
    }
    s.extent[d] = to_int(position_extent(results, reach, zeros, pixels));
    s.pad[d] = to_int(begin);
}

// The lines that a group's channels are. A group that begins inside 32 bytes is copied from where these do, which takes no more lines.
void set_lines(ResidentFilterConvArgs& s, const KernelConv& conv, const KernelConfig& c, bool backward) {
    const std::int64_t merged = c.num_groups_to_merge;
    const std::int64_t channels = merged * (backward ? conv.k : conv.c),
                       columns = merged * (backward ? conv.c : conv.k);
    const int steps = to_int(ceil_div(channels, std::int64_t{kResidentFilterStepChannels}));
    s.lines = to_int(ceil_div(steps, kResidentFilterFullSteps));
    s.last_steps = steps - (s.lines - 1) * kResidentFilterFullSteps;
    s.column_tiles = to_int(ceil_div(columns, std::int64_t{c.tile.n}));
    s.jobs = to_int(conv.groups / merged * s.column_tiles);
}

// The slot of a stage: a run of pixels, and what the taps reach beyond it.
void set_slot(ResidentFilterConvArgs& s, const KernelConv& conv, const KernelConfig& c) {
    constexpr std::int64_t kBlockLines = 8;  // of the swizzle
    const auto reach = [&](int d) { return (kResidentFilterTaps - 1) / conv.stride[d]; };
    const std::int64_t lines = c.tile.m / c.wave.m + reach(1) * std::int64_t{s.extent[2]} + reach(2);
    const std::int64_t longest = s.lines > 1 ? kFullBytes : resident_filter_line_bytes(s.last_steps);
    s.slot_lines = to_int(round_up(lines, kBlockLines * c.cluster.n));  // each copies a share
    s.slot_bytes = to_int(round_up(s.slot_lines * longest, kSwizzleBlock));
}

// Barriers and where rows go; results on their way; weights (kStaging, kWeights in kernels/cuda/resident_filter_conv).
std::int64_t fixed_bytes(const KernelConfig& c, std::int64_t weights) {
    constexpr std::int64_t kTables = 2048, kChunkBytes = 16, kChunkColumns = 8;
    const std::int64_t pitch = (c.tile.n / kChunkColumns | 1) * kChunkBytes;
    return round_up(kTables + c.wave.m * kRowsOfProduct * pitch, kSwizzleBlock) + weights;
}

// The weights of a block, line after line of channels.
std::int64_t filter_bytes(const ResidentFilterConvArgs& s, const KernelConfig& c) {
    return kTaps * c.tile.n * (s.lines - 1) * kFullBytes +
           round_up(kTaps * c.tile.n * resident_filter_line_bytes(s.last_steps), kSwizzleBlock);
}

}  // namespace

std::optional<ResidentFilterPlan> resident_filter_plan(const Problem& p, const KernelConfig& c, const ArchSpec& arch,
                                                       Rejected* why) {
    if (p.op != c.op || std::min({c.wave.m, c.tile.m, c.tile.n, c.cluster.n}) < 1) return std::nullopt;
    const KernelConv conv = kernel_conv(p);
    if (refuses_problem(conv, why)) return std::nullopt;
    const bool backward = c.op == Op::conv_bwd_data;
    ResidentFilterPlan plan{};
    ResidentFilterConvArgs& s = plan.shape;
    s.extent[0] = 1;
    for (int d = 1; d < kMaxKernelDims; ++d) set_axis(s, conv, backward, d);
    const std::int64_t positions = conv.images * s.extent[1] * s.extent[2];
    constexpr std::int64_t kMostPositions = std::int64_t{1} << 30, kMostLine = std::int64_t{1} << 20;
    if (positions >= kMostPositions || s.extent[2] >= kMostLine) {
        refuse(why, TILEWISE_TEXT("{} positions, {} along a line", positions, s.extent[2]),
               TILEWISE_TEXT("fewer than {} and {}", kMostPositions, kMostLine));
        return std::nullopt;
    }
    s.tiles = to_int(ceil_div(positions, std::int64_t{c.tile.m / c.wave.m}));
    set_lines(s, conv, c, backward);
    set_slot(s, conv, c);
    plan.weight_bytes = filter_bytes(s, c);
    const std::int64_t fixed = fixed_bytes(c, plan.weight_bytes), room = block_share_bytes(c, arch) - fixed;
    if (s.column_tiles % c.cluster.n != 0) {
        refuse(why, TILEWISE_TEXT("{} tiles of columns in clusters of {}", s.column_tiles, c.cluster.n),
               TILEWISE_TEXT("a multiple, or cluster 1x1"));
        return std::nullopt;
    }
    constexpr std::int64_t kLeastStages = 2, kMostLines = 1024;  // of one copy
    const std::int64_t fit = room / c.wave.m / s.slot_bytes;
    if (fit < kLeastStages || s.slot_lines > kMostLines) {
        refuse(why, TILEWISE_TEXT("stages of {} pixels, {} bytes", s.slot_lines, s.slot_bytes),
               TILEWISE_TEXT("{} of at most {} pixels for each of {} workers in {} bytes, beside {} bytes of weights",
                             kLeastStages, kMostLines, c.wave.m, room, plan.weight_bytes));
        return std::nullopt;
    }
    s.stages = to_int(std::min({fit, std::int64_t{c.stages}, std::int64_t{kResidentFilterMostStages}}));
    plan.shared_bytes = fixed + std::int64_t{c.wave.m} * s.stages * s.slot_bytes;
    // Each job has as many blocks as there are units for it.
    const int each = to_int(std::clamp<std::int64_t>(arch.units / s.jobs, 1, ceil_div(s.tiles, c.wave.m)));
    s.parts = each * c.wave.m;
    plan.blocks = s.jobs * each;
    return plan;
}

ResidentFilterPlan resident_filter_plan_of(const GpuGrid& grid, const KernelConfig& c) {
    const auto& shape = grid.family_args.as<ResidentFilterConvArgs>();
    return {shape, grid.blocks, filter_bytes(shape, c), grid.block.shared_bytes};
}

}  // namespace tilewise
