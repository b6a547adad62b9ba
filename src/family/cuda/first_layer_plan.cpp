// SPDX-License-Identifier: MIT
#include "family/cuda/first_layer_plan.hpp"

#include <algorithm>
#include <functional>

#include "base/rounding.hpp"
#include "base/work_parts.hpp"
#include "config/geometry.hpp"
#include "config/rule_groups.hpp"
#include "family/cuda/patch_tile.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {
namespace {

bool refuses(const KernelConv& conv, std::int64_t columns, std::int64_t shared_bytes, Rejected* out) {
    if (refuses_patch_reach(conv, out)) return true;
    const std::int64_t taps = conv.filter[0] * conv.filter[1] * round_up(conv.filter[2], kFirstLayerStepTaps);
    if (taps * columns * kFewChannelBytes > shared_bytes) {
        return refuse(out, TILEWISE_TEXT("weights of {} taps for {} columns", taps, columns),
                      TILEWISE_TEXT("at most {} bytes of shared memory", shared_bytes));
    }
    return (conv.c > kFewChannels || conv.dilation[2] != 1 ||
            conv.stride[2] * kFewChannelBytes % kPatchChunkBytes != 0) &&
           refuse(out, TILEWISE_TEXT("c={}, stride {}, dilation {}", conv.c, conv.stride[2], conv.dilation[2]),
                  TILEWISE_TEXT("at most {} channels, an even stride and no dilation along the columns", kFewChannels));
}

// Steps of the reduction of all products of a tile.
double tile_steps(int lines, int line_steps, const KernelConfig& c) {
    const int products = (c.tile.m / 16) * (c.tile.n / 8);
    return double(lines) * line_steps * products;
}

// A block's work on one tile: products, or reading pixels one element at a time and writing results; both through shared memory.
template <class N>
N first_tile_cycles(double steps, double rows, double pixels, const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.first_layer_conv;
    const double bytes = rows * c.tile.n * static_cast<double>(bytes_of(c.dtype_out));
    return longest(
               {term<N>("steps", steps, price.step_cycles), named("results", N(bytes) / N(price.bytes_per_cycle))}) +
           term<N>("pixels", pixels, price.pixel_cycles) + N(price.tile_cycles) / c.blocks_per_unit;
}

// Tiles that follow each other on a unit.
template <class N>
N first_plan_cycles(const FirstLayerPlan& plan, const KernelConfig& c, const ArchSpec& arch) {
    const std::int64_t places = std::int64_t{arch.units} * c.blocks_per_unit;
    const double turns = double(ceil_div(plan.blocks, places)) *
                         double(ceil_div(plan.launch.tile_count(), plan.launch.blocks_per_slice));
    const FirstLayerConvArgs& launch = plan.launch;
    return counted<N>("tiles", turns * c.blocks_per_unit) *
           first_tile_cycles<N>(tile_steps(launch.lines, launch.line_steps, c), launch.tile.rows(),
                                launch.patch.pixels(), c, arch);
}

}  // namespace

std::optional<FirstLayerPlan> first_layer_plan(const Problem& p, const KernelConfig& c, const ArchSpec& arch,
                                               Rejected* why) {
    if (p.op != c.op || std::min({c.tile.m, c.tile.n, c.wave.m, c.blocks_per_unit}) < 1) return std::nullopt;
    const KernelConv conv = kernel_conv(p);
    const std::int64_t shared = block_room_bytes(c, arch), places = std::int64_t{arch.units} * c.blocks_per_unit;
    if (refuses(conv, c.tile.n, shared, why)) return std::nullopt;
    const PatchAxes axes = patch_axes(conv, false);
    const FirstLayerConvKernel kernel{
        c.tile.m, c.tile.n, to_int(wave_count(c)), c.tile.m / c.wave.m, 2, to_int(bytes_of(c.dtype_out))};
    const std::int64_t all_slices = conv.groups * ceil_div(conv.k, c.tile.n);
    const double steps =
        tile_steps(to_int(conv.filter[0] * conv.filter[1]), to_int(ceil_div(conv.filter[2], kFirstLayerStepTaps)), c);
    std::optional<FirstLayerPlan> best;
    const auto look_at = [&](const CutPatch& cut) {
        const PatchTile& tile = cut.tile;
        // Turns are no fewer than tiles for each place, and no layout has fewer pixels.
        constexpr double kSlack = 1 - 1e-9;
        const double turns = double(all_slices) * double(cut.tiles) / double(places) * c.blocks_per_unit;
        const double least = turns * first_tile_cycles<double>(steps, tile.rows(), cut.pixels, c, arch);
        if (best && least * kSlack >= best->cycles) return;
        FirstLayerPlan next{first_layer_conv_args(conv, tile, kernel), 0, 0};
        FirstLayerConvArgs& launch = next.launch;
        if (launch.total_bytes > shared ||
            !fits_patch_fields(tile.images, launch.patch.depth, launch.patch.height, launch.patch.columns)) {
            return;
        }
        const std::int64_t slices = conv.groups * launch.column_tiles, tiles = launch.tile_count();
        launch.blocks_per_slice = to_int(std::min(tiles, std::max<std::int64_t>(1, places / slices)));
        next.blocks = to_int(slices * launch.blocks_per_slice);
        next.cycles = first_plan_cycles<double>(next, c, arch);
        if (!best || next.cycles < best->cycles) best = next;
    };
    each_patch_tile(axes, conv.images, c.tile.m, shared / kFewChannelBytes,
                    std::cref(look_at));  // a reference needs no memory
    if (!best) {
        refuse(why, TILEWISE_TEXT("weights and the smallest patch of pixels"),
               TILEWISE_TEXT("at most {} bytes of shared memory", shared));
    }
    return best;
}

template <class N>
N first_layer_cycles(const FirstLayerPlan& plan, const KernelConfig& c, const ArchSpec& arch) {
    return first_plan_cycles<N>(plan, c, arch);
}
template double first_layer_cycles<double>(const FirstLayerPlan&, const KernelConfig&, const ArchSpec&);
template Term first_layer_cycles<Term>(const FirstLayerPlan&, const KernelConfig&, const ArchSpec&);
template Noted first_layer_cycles<Noted>(const FirstLayerPlan&, const KernelConfig&, const ArchSpec&);

FirstLayerPlan first_layer_plan_of(const GpuGrid& grid) {
    return {grid.family_args.as<FirstLayerConvArgs>(), grid.blocks, 0};
}

}  // namespace tilewise
