// SPDX-License-Identifier: MIT
#include "family/cuda/channel_slice_plan.hpp"

#include <algorithm>

#include "base/rounding.hpp"
#include "base/work_parts.hpp"
#include "config/depthwise_spec.hpp"
#include "config/rule_groups.hpp"
#include "kernels/common/channel_slice_args.hpp"
#include "kernels/common/to_int.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

constexpr std::int64_t kSliceElementBytes = 2, kSliceWeightBytes = 4, kSliceLanes = 32;

// The extents of the outputs and inputs of a direction, the filter, and how channels are shared out.
struct SliceSizes {
    std::int64_t images, height, width, in_height, in_width;
    std::int64_t lines, taps_across, stride;
    std::int64_t pitch, channel_tiles, places;  // of a pixel; places of a block take pieces side by side
};

SliceSizes slice_sizes_of(const Problem& p, const KernelConfig& c) {
    const ConvShape& s = p.conv;
    const bool backward = c.op == Op::conv_bwd_data;
    const Extents y = output_size(s), &out = backward ? s.in : y, &in = backward ? y : s.in;
    SliceSizes z{};
    z.images = s.n, z.height = out[0], z.width = out[1], z.in_height = in[0], z.in_width = in[1];
    z.lines = s.filter[0], z.taps_across = s.filter[1], z.stride = s.stride[1];
    z.pitch = c.tile.n * kSliceElementBytes, z.channel_tiles = ceil_div(s.g, c.tile.n);
    z.places = c.wave.m * kSliceLanes * slice_vector(c) / c.tile.n;
    return z;
}

void set_slice_tile(ChannelSlicePlan& plan, const SliceSizes& z, const KernelConfig& c) {
    plan.slice_rows = std::min((plan.rows - 1) * z.stride + z.lines, z.in_height);
    // The weights, a line of zeros, and the slice.
    plan.shared_bytes = z.lines * z.taps_across * c.tile.n * kSliceWeightBytes +
                        (1 + plan.images * plan.slice_rows) * z.in_width * z.pitch;
    plan.bands = ceil_div(z.height, plan.rows), plan.tiles = plan.bands * ceil_div(z.images, plan.images);
    // Rows are cut where there are fewer of them than threads to take them.
    constexpr std::int64_t kLeastColumns = 7;
    const std::int64_t rows = plan.images * ceil_div(plan.rows, slice_own_rows(c));
    plan.segments = std::clamp<std::int64_t>(z.places / rows, 1, std::max<std::int64_t>(1, z.width / kLeastColumns));
    plan.columns = ceil_div(z.width, plan.segments), plan.segments = ceil_div(z.width, plan.columns);
}

// Instructions of a warp for a piece, about as the compiled code has them.
double piece_instructions(const ChannelSlicePlan& plan, const SliceSizes& z, const KernelConfig& c) {
    constexpr double kPiece = 40, kColumn = 3, kOutput = 4, kOutputChannel = 2.5;
    const double vector = slice_vector(c), own = slice_own_rows(c);
    const auto columns = static_cast<double>(plan.columns), across = static_cast<double>(z.taps_across);
    const auto lines = static_cast<double>(z.lines), stride = static_cast<double>(z.stride);
    const double loads = (lines + stride * (own - 1)) * (1 + vector), products = lines * across * vector;
    return kPiece + columns * stride * (kColumn + loads) +
           columns * own * (products + kOutput + kOutputChannel * vector) + across * (kColumn + loads / 2);
}

// Blocks of a unit load while others compute, as far as there are others. Rows that neighbouring bands share come from memory once,
// then from the cache.
template <class N>
N slice_cycles_of(const ChannelSlicePlan& plan, const SliceSizes& z, const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.depthwise_channel_slice;
    const std::int64_t resident = std::max(1, c.blocks_per_unit), blocks = plan.tiles * z.channel_tiles;
    const auto waves = static_cast<double>(ceil_div(blocks, arch.units * resident));
    const auto together = static_cast<double>(std::min(resident, ceil_div(blocks, std::int64_t{arch.units})));
    const std::int64_t pieces = plan.images * ceil_div(plan.rows, slice_own_rows(c)) * plan.segments;
    const auto turns = static_cast<double>(ceil_div(pieces, z.places));
    const std::int64_t line = plan.images * z.in_width * z.pitch, own = std::min(plan.rows * z.stride, plan.slice_rows);
    const auto copied = static_cast<double>(line * plan.slice_rows),
               shared = static_cast<double>(line * (plan.slice_rows - own));
    const auto written = static_cast<double>(plan.images * plan.rows * z.width * z.pitch);
    const double copies = copied / 16 / (c.wave.m * static_cast<double>(kSliceLanes));
    const N issue = named("issue", (counted<N>("instructions", turns * piece_instructions(plan, z, c)) +
                                    term<N>("copies", copies, price.copy_instructions)) *
                                       (together * c.wave.m) / N(price.issued_per_cycle));
    const N memory = named("loads", (counted<N>("bytes", copied - shared + written) / N(price.bytes_per_cycle) +
                                     counted<N>("shared bytes", shared) / N(price.cache_bytes_per_cycle)) *
                                        together);
    return N(price.start_cycles) + counted<N>("waves", waves) * overlap(N(price.overlapped_share), {issue, memory});
}

}  // namespace

int slice_vector(const KernelConfig& c) { return std::max(1, to_int(c.warp_tile.m * c.warp_tile.n / kSliceLanes)); }

int slice_own_rows(const KernelConfig& c) { return std::max(1, c.tile.m / std::max(1, c.wave.m * c.warp_tile.m)); }

std::optional<ChannelSlicePlan> channel_slice_plan(const Problem& p, const KernelConfig& c, const ArchSpec& arch,
                                                   Rejected* why) {
    const SliceSizes z = slice_sizes_of(p, c);
    const std::int64_t room = slice_shared_bytes(c);
    std::optional<ChannelSlicePlan> best;
    std::int64_t least = 0;
    constexpr std::int64_t kMostImages = 64, kMostRows = std::int64_t{1} << 16;  // of a tile
    for (std::int64_t rows = 1; rows <= std::min(z.height, kMostRows); ++rows) {
        ChannelSlicePlan plan;
        plan.rows = rows;
        if (ceil_div(z.height, ceil_div(z.height, rows)) != rows) continue;  // fewer make as many bands
        for (plan.images = 1; plan.images <= std::min(z.images, kMostImages); ++plan.images) {
            set_slice_tile(plan, z, c);
            if (least == 0) least = plan.shared_bytes;
            if (plan.shared_bytes > room) break;
            plan.cycles = slice_cycles_of<double>(plan, z, c, arch);
            if (!best || plan.cycles < best->cycles) best = plan;
        }
        if (plan.images == 1) break;  // one image did not fit, nor will it with more rows
    }
    if (!best) {
        refuse(why, TILEWISE_TEXT("a row of outputs that takes {} bytes of shared memory", least),
               TILEWISE_TEXT("at most {}, or a kernel that walks down strips", room));
    }
    return best;
}

template <class N>
N channel_slice_cycles(const ChannelSlicePlan& plan, const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    return slice_cycles_of<N>(plan, slice_sizes_of(p, c), c, arch);
}
template double channel_slice_cycles<double>(const ChannelSlicePlan&, const Problem&, const KernelConfig&,
                                             const ArchSpec&);
template Term channel_slice_cycles<Term>(const ChannelSlicePlan&, const Problem&, const KernelConfig&, const ArchSpec&);
template Noted channel_slice_cycles<Noted>(const ChannelSlicePlan&, const Problem&, const KernelConfig&,
                                           const ArchSpec&);

ChannelSlicePlan channel_slice_plan_of(const GpuGrid& grid) {
    const auto& args = grid.family_args.as<ChannelSliceArgs>();
    ChannelSlicePlan plan;
    plan.images = args.images, plan.rows = args.rows, plan.slice_rows = args.slice_rows, plan.columns = args.columns;
    plan.bands = args.bands.divisor, plan.segments = args.segments.divisor;
    plan.tiles = std::int64_t{grid.blocks} / args.channel_tiles.divisor;
    plan.shared_bytes = grid.block.shared_bytes;
    return plan;
}

}  // namespace tilewise
