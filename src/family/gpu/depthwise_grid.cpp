// SPDX-License-Identifier: MIT
#include "family/gpu/depthwise_grid.hpp"

#include <algorithm>

#include "base/rounding.hpp"
#include "config/depthwise_spec.hpp"
#include "config/family_id.hpp"
#include "kernels/common/depthwise_sums.hpp"
#include "kernels/common/depthwise_tiles_args.hpp"
#include "kernels/common/to_int.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

// Strips of all images of the output. Those of backward data begin where the stride's phase does, so maybe before the plane.
std::int64_t strips_of(const Problem& p, const DepthwiseSpec& spec) {
    const ConvShape& s = p.conv;
    const bool backward = p.op == Op::conv_bwd_data;
    const Extents size = backward ? s.in : output_size(s);
    std::int64_t count = s.n;
    for (int d = 0; d < size.rank; ++d) {
        const int from_last = size.rank - 1 - d;
        const std::int64_t unit = from_last == 0 ? spec.strip_width : from_last == 1 ? spec.strip_height : 1;
        const std::int64_t before = backward && from_last < 2 ? s.pad_before[d] % s.stride[d] : 0;
        count *= ceil_div(size[d] + before, unit);
    }
    return count;
}

std::int64_t any_blocks(const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    const GemmView gemm = gemm_view(p);
    if (c.op == Op::conv_bwd_weight) {
        return ceil_div(p.conv.k, arch.wave_size) * ceil_div(product(p.conv.filter), kAnyWeightTaps) * c.split_k;
    }
    constexpr std::int64_t kBlocksPerUnit = 64;  // further outputs are walked over
    const std::int64_t vectors = gemm.m * gemm.n * gemm.batch / c.vector_a;
    return std::min(ceil_div(vectors, std::int64_t{arch.wave_size} * c.wave.m), kBlocksPerUnit * arch.units);
}

// The tiles of a kernel on matrix units (kernels/common/depthwise_tiles_args.hpp).
struct FrameTiles {
    std::int64_t frames, depth, height;  // of the outputs
    std::int64_t column_tiles, across, reach, half, pitch;
    std::int64_t tile_frames, rows;  // frames of a tile; rows of all tiles
};
FrameTiles frame_tiles_of(const Problem& p, const KernelConfig& c, const DepthwiseSpec& spec) {
    const Extents size = p.op == Op::conv_bwd_data ? p.conv.in : output_size(p.conv);
    const int rank = size.rank;
    const std::int64_t stride = c.ct_stride[rank - 1], width = size[rank - 1];
    FrameTiles t{};
    t.depth = rank > 2 ? size[0] : 1, t.height = size[rank - 2], t.frames = p.conv.n * t.depth;
    if (family_of(c) == FamilyId::depthwise_toeplitz) {  // strips of 8 outputs, with as many pixels beside them
        const std::int64_t strips = ceil_div(width, spec.strip_width);
        t.column_tiles = ceil_div(strips, spec.strips), t.across = ceil_div(strips, t.column_tiles);
        t.pitch = (t.across + 1) * spec.strip_width;
        t.tile_frames = spec.strips / t.across;
        t.rows = t.column_tiles * ceil_div(t.frames, t.tile_frames) * t.height;
        return t;
    }
    t.column_tiles = ceil_div(width, spec.strip_width), t.across = ceil_div(width, t.column_tiles);
    t.reach = (t.across - 1) * stride + c.ct_filter[rank - 1];
    t.half = ceil_div(t.reach, stride), t.pitch = t.half * stride;
    const std::int64_t most = std::min(spec.strip_width / t.across, spec.line_slots / t.pitch);
    const std::int64_t frame_tiles = ceil_div(t.frames, most);
    t.tile_frames = ceil_div(t.frames, frame_tiles);
    t.rows = t.column_tiles * frame_tiles * t.height;
    return t;
}

// Tiles that a part of so many rows begins, at most.
std::int64_t walks_of(const FrameTiles& tiles, std::int64_t parts) {
    const std::int64_t rows = ceil_div(tiles.rows, parts), height = tiles.height;
    const bool whole = tiles.rows % parts == 0 && (height % rows == 0 || rows % height == 0);
    return whole ? ceil_div(rows, height) : (rows + height - 2) / height + 1;
}

// The lines of the longest part: those of its rows, and for every tile that it begins those above and below, and as many as
// there is time for until the first is there.
std::int64_t part_cost(const FrameTiles& tiles, const KernelConfig& c, std::int64_t parts) {
    constexpr std::int64_t kWaitLines = 3;
    const int d = c.ct_filter.rank - 2;
    const std::int64_t stride = c.ct_stride[d];
    return ceil_div(tiles.rows, parts) * stride + walks_of(tiles, parts) * (kWaitLines + c.ct_filter[d] - stride);
}

// As many parts as there is room for at once, unless fewer that do not cross from tile to tile are done sooner.
std::int64_t parts_of(const FrameTiles& tiles, const Problem& p, const KernelConfig& c, const DepthwiseSpec& spec,
                      const ArchSpec& arch) {
    if (c.op == Op::conv_bwd_weight) return c.split_k;
    const std::int64_t places = std::int64_t{arch.units} * spec.resident_blocks / ceil_div(p.conv.g, c.tile.n);
    const std::int64_t most = std::clamp<std::int64_t>(places, 1, ceil_div(tiles.rows, std::max(1, spec.strip_height)));
    std::int64_t best = most;
    const std::int64_t count = tiles.rows / tiles.height;  // of tiles
    for (std::int64_t pieces = 1; pieces * count <= most && pieces <= tiles.height; ++pieces) {
        if (tiles.height % pieces != 0) continue;
        if (part_cost(tiles, c, pieces * count) < part_cost(tiles, c, best)) best = pieces * count;
    }
    return best;
}

std::int64_t matrix_blocks(const Problem& p, const KernelConfig& c, const DepthwiseSpec& spec, const ArchSpec& arch) {
    const bool planes = c.op == Op::conv_bwd_weight && p.conv.filter.rank > 2;  // each has blocks of its own
    const std::int64_t parts = parts_of(frame_tiles_of(p, c, spec), p, c, spec, arch);
    return ceil_div(p.conv.g, c.tile.n) * parts * (planes ? p.conv.filter[0] : 1);
}

}  // namespace

std::int64_t depthwise_blocks(const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    const DepthwiseSpec spec = depthwise_spec(c, arch);
    const FamilyId family = family_of(c);
    if (family == FamilyId::depthwise_any) return any_blocks(p, c, arch);
    if (family != FamilyId::depthwise_strips) return matrix_blocks(p, c, spec, arch);
    const std::int64_t channel_tiles = ceil_div(p.conv.g, c.tile.n);
    return channel_tiles * (c.op == Op::conv_bwd_weight ? c.split_k : ceil_div(strips_of(p, spec), spec.strips));
}

DepthwiseShare depthwise_share(const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    const DepthwiseSpec spec = depthwise_spec(c, arch);
    const FrameTiles tiles = frame_tiles_of(p, c, spec);
    const std::int64_t parts = parts_of(tiles, p, c, spec, arch);
    DepthwiseShare share;
    share.blocks = matrix_blocks(p, c, spec, arch);
    share.rows = ceil_div(tiles.rows, parts);
    share.walks = walks_of(tiles, parts);
    return share;
}

void set_depthwise_geometry(GpuGrid& grid, const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    const DepthwiseSpec spec = depthwise_spec(c, arch);
    const FamilyId family = family_of(c);
    if (family == FamilyId::depthwise_any || family == FamilyId::depthwise_strips) return;
    const FrameTiles tiles = frame_tiles_of(p, c, spec);
    const std::int64_t parts = parts_of(tiles, p, c, spec, arch);
    const auto divisor = [](std::int64_t by) { return LaunchDivisor(static_cast<unsigned>(to_int(by))); };
    DepthwiseTilesArgs launch{};
    launch.frames = to_int(tiles.tile_frames), launch.reach = to_int(tiles.reach);
    launch.half = to_int(tiles.half), launch.total_frames = to_int(tiles.frames);
    launch.part_rows = to_int(tiles.rows / parts), launch.remainder = to_int(tiles.rows % parts);
    launch.channel_tiles = divisor(ceil_div(p.conv.g, c.tile.n)), launch.column_tiles = divisor(tiles.column_tiles);
    launch.parts = divisor(parts), launch.height = divisor(tiles.height), launch.across = divisor(tiles.across);
    launch.pitch = divisor(tiles.pitch), launch.depth = divisor(tiles.depth);
    grid.family_args.set(launch);
}

void add_depthwise_reduction(GpuGrid& grid, const Problem& p, int split_k, const ArchSpec& arch) {
    constexpr int kThreads = 128;
    const std::int64_t waves = kThreads / arch.wave_size;
    grid.reduce_threads = kThreads;
    grid.reduce_blocks = to_int(ceil_div(product(p.conv.filter) * p.conv.k, waves * depthwise_sums_per_warp(split_k)));
}

}  // namespace tilewise
