// SPDX-License-Identifier: MIT
#include "family/cuda/patch_tile.hpp"

#include <algorithm>
#include <functional>

#include "base/rounding.hpp"
#include "config/family_id.hpp"
#include "config/geometry.hpp"
#include "config/rule_groups.hpp"
#include "kernels/common/patch_conv_args.hpp"
#include "problem/facts.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {
namespace {

// Extents that cut `size` into 1, 2, 3, ... about even parts, from the longest that fits on; the last halve each other.
template <class Visit>
void each_extent(std::int64_t size, std::int64_t most, Visit visit) {
    constexpr int kEvenParts = 6;
    std::int64_t cuts = ceil_div(size, std::max<std::int64_t>(1, most)), last = 0;
    for (int i = 0; cuts <= size; ++i) {
        const std::int64_t extent = ceil_div(size, cuts);
        if (extent != last) visit(to_int(extent));
        last = extent;
        cuts = i < kEvenParts ? cuts + 1 : cuts * 2;
    }
}

// Cycles of a unit that a tile takes: what ldmatrix and the matrix units have to do, what comes through the L2 cache, and
// what is the same for every tile. What takes less time than the rest is hidden but for a part. Beside that every tile has its
// beginning and end, which is longer where threads write results, and threads that copy patches take turns with the arithmetic. Half
// sectors of the cache take their time: 32 groups of 8 channels at 56 x 56, stride 2, took 240 us in pieces of 16 bytes, 46 in pieces
// of 64.
struct TileCycles {
    double shared, products;  // the same for every tile of a problem

    // Beside what a tile copies.
    double with(double copies, const ArchSpec& arch) const {
        const double longest = std::max({shared, products, copies});
        return longest + arch.prices.patch_conv_search.hidden_share.value * (shared + products + copies - longest);
    }
};
TileCycles common_cycles(const KernelConfig& c, const PatchConvLayout& p, const ArchSpec& arch) {
    const auto& price = arch.prices.patch_conv_search;
    const double warp_rows = static_cast<double>(c.tile.m) / c.wave.m;
    const double columns = static_cast<double>(c.tile.n) / c.wave.n;
    // Rows that warps share are fetched once for the three taps of a column.
    const double steps_m = warp_rows / kPatchStepRows,
                 fetched = shares_patch_rows(c) ? (steps_m + 2) / (3 * steps_m) : 1;
    const double lines = fetched * c.tile.m + columns * c.tile.m / warp_rows;
    const double steps = static_cast<double>(p.steps) * p.products;
    return {steps * lines * 2 * kPatchChunkBytes / price.shared_bytes_per_cycle.value,
            steps * c.tile.m * columns * c.warp_tile.k / price.products_per_cycle.value};
}

double tile_cycles(const TileCycles& common, const KernelConfig& c, const PatchConvLayout& p, const ArchSpec& arch) {
    const auto& price = arch.prices.patch_conv_search;
    const double chunks = static_cast<double>(p.patch.pixels()) * p.patch.chunks;
    const double cached = chunks * kPatchChunkBytes / price.cache_bytes_per_cycle.value;
    const double copies = p.patch.chunks > 1 ? cached : cached * price.half_sector_share.value;
    const bool in_halves = p.out_channels * bytes_of(c.dtype_out) < 2 * kPatchChunkBytes;
    const double halves = in_halves ? price.half_cycles.value * c.tile.m * p.products * p.classes : 0;
    const double writes = price.write_cycles.value / c.blocks_per_unit + halves;
    const double by_threads = (p.out_stages > 0 ? 0 : writes) +
                              (family_of(c) == FamilyId::patch_box_conv ? 0 : chunks * price.copy_cycles.value);
    return common.with(copies, arch) + price.tile_cycles.value / c.blocks_per_unit + by_threads;
}

// Weights of merged groups go to their places one by one, waiting for memory, before anything else; those in chunks come while
// patches do.
double weight_cycles(const KernelConv& conv, const PatchConvKernel& kernel, const ArchSpec& arch) {
    constexpr int kLanes = 32;
    if (!kernel.diagonal) return 0;
    const auto elements =
        static_cast<double>(kernel.merge * conv.c * conv.k * conv.filter[0] * conv.filter[1] * conv.filter[2]);
    return arch.prices.patch_conv_search.weight_cycles.value * elements / (kernel.warps * kLanes);
}

bool has_room(const PatchTile& tile, const PatchConvLayout& plan, std::int64_t shared_bytes) {
    const bool is_box =
        plan.patch.plane == 0 || std::max(plan.patch.height, plan.patch.phase * plan.patch.steps[2]) <= kPatchMostBox;
    return plan.total_bytes <= shared_bytes && is_box &&
           fits_patch_fields(tile.images, plan.patch.depth, plan.patch.height, plan.patch.columns);
}

}  // namespace

bool shares_patch_rows(const KernelConfig& c) {
    return is_patch_conv(family_of(c)) && c.specialization == Specialization::filter_3x3 && c.ndim == 2;
}

PatchConvKernel patch_conv_kernel(const KernelConfig& c) {
    return {c.op == Op::conv_bwd_data,
            c.num_groups_to_merge,
            c.tile.m,
            c.tile.n / c.wave.n,
            to_int(wave_count(c)),
            std::max(1, c.stages),
            to_int(bytes_of(c.dtype)),
            to_int(bytes_of(c.dtype_out)),
            access_bytes(c, 1) < kPatchChunkBytes,
            c.vector_c == 1,
            family_of(c) == FamilyId::patch_box_conv,
            0};
}

PatchAxes patch_axes(const KernelConv& conv, bool backward_data) {
    PatchAxes axes{};
    for (int d = 0; d < kMaxKernelDims; ++d) axes.axis[d] = patch_axis(conv, d, backward_data);
    return axes;
}

bool refuses_patch_reach(const KernelConv& conv, Rejected* out) {
    constexpr std::int64_t kMost = std::int64_t{1} << kPatchColumnBits;  // of a patch
    for (int d = 0; d < kMaxKernelDims; ++d) {
        const Index reach = (conv.filter[d] - 1) * conv.dilation[d];
        if (std::max({reach, conv.stride[d], conv.dilation[d]}) < kMost) continue;
        return refuse(
            out,
            TILEWISE_TEXT("a filter of {}, dilation {}, stride {}", conv.filter[d], conv.dilation[d], conv.stride[d]),
            TILEWISE_TEXT("a reach and a stride below {}", kMost));
    }
    return false;
}

bool is_patch_within(const PatchAxes& axes, const PatchTile& tile, std::int64_t pixel_bytes, std::int64_t most_bytes) {
    std::int64_t bytes = pixel_bytes * tile.images;
    for (int d = 0; d < kMaxKernelDims; ++d) {
        bytes *= std::int64_t{tile.extent[d] - 1} * axes.axis[d].in_step + axes.axis[d].span;
        if (bytes > most_bytes) return false;
    }
    return true;
}

double least_patch_pixels(const PatchAxes& axes, int most_rows) {
    double pixels = 1;
    for (const PatchAxis& axis : axes.axis) {
        const double longest = std::min(axis.class_outputs(), most_rows), step = axis.in_step, span = axis.span;
        pixels *= span > step ? step + (span - step) / longest : span;
    }
    return pixels;
}

void each_patch_tile(const PatchAxes& axes, std::int64_t images, int most_rows,
                     const std::function<void(const PatchTile&)>& visit) {
    PatchTile tile{};
    each_extent(axes.axis[2].class_outputs(), most_rows, [&](int width) {
        tile.extent[2] = width;
        each_extent(axes.axis[1].class_outputs(), most_rows / width, [&](int height) {
            tile.extent[1] = height;
            const int area = width * height;
            each_extent(axes.axis[0].class_outputs(), most_rows / area, [&](int depth) {
                tile.extent[0] = depth;
                const std::int64_t box = std::int64_t{area} * depth;
                const bool is_whole = depth == axes.axis[0].class_outputs() && height == axes.axis[1].class_outputs() &&
                                      width == axes.axis[2].class_outputs();
                tile.images = 1;
                if (!is_whole) return visit(tile);
                each_extent(images, std::min<std::int64_t>(most_rows / box, (1 << kPatchImageBits) - 1), [&](int n) {
                    tile.images = n;
                    visit(tile);
                });
            });
        });
    });
}

namespace {

// Tiles of 16 columns, their rows whole steps of a warp.
template <class Visit>
void each_row_tile(std::int64_t images, const KernelConfig& c, Visit visit) {
    const int warp_steps = c.tile.m / c.wave.m / kPatchStepRows;
    for (int height = warp_steps; height * kPatchStepRows <= c.tile.m; height += warp_steps) {
        const int most = to_int(std::min<std::int64_t>(images, c.tile.m / (height * kPatchStepRows)));
        visit(PatchTile{most, {1, height, kPatchStepRows}});
        if (most > 1) visit(PatchTile{1, {1, height, kPatchStepRows}});
    }
}

}  // namespace

namespace {

// Whether slices have narrow pieces of lines of memory, which come once for each slice unless the cache still has them: about a
// quarter of it lasts until slices that follow each other meet a pixel again.
bool slices_share_lines(const Problem& p, const KernelConfig& c, const PatchConvLayout& plan, const ArchSpec& arch) {
    constexpr std::int64_t kNarrowBytes = 64, kCacheShare = 4;
    const std::int64_t in = std::int64_t{plan.in_channels} * plan.products * bytes_of(c.dtype),
                       out = std::int64_t{plan.out_channels} * plan.products * bytes_of(c.dtype_out);
    const std::int64_t share = arch.cache_bytes / kCacheShare;
    return std::min(in, out) <= kNarrowBytes && bytes_moved(p) > static_cast<double>(share);
}

}  // namespace

std::optional<PatchConvPlan> patch_conv_plan(const Problem& problem, const KernelConfig& c, const ArchSpec& arch) {
    const KernelConv conv = kernel_conv(problem);
    constexpr int kMostOutStages = 2;
    PatchConvKernel kernel = patch_conv_kernel(c);
    const PatchAxes axes = patch_axes(conv, kernel.backward_data);
    const int warp_rows = c.tile.m / c.wave.m;
    const std::int64_t shared = block_room_bytes(c, arch);
    const std::int64_t in = kernel.backward_data ? conv.k : conv.c, out = kernel.backward_data ? conv.c : conv.k;
    const std::int64_t column_tiles = ceil_div(out * patch_product_groups(conv, kernel), kernel.columns);
    const std::int64_t slices = conv.groups / kernel.merge * column_tiles;
    const std::int64_t places = std::int64_t{arch.units} * c.blocks_per_unit;
    const int most_buffers = kernel.buffers;
    constexpr double kWorthIt = 1.15;  // turns: pieces of 16 bytes took 2.4 times as long one after the other
    const double weights = weight_cycles(conv, kernel, arch);
    // Blocks that share a unit share what it can do in a cycle.
    const auto cycles_of = [&](std::int64_t turns, double tile) {
        return static_cast<double>(turns) * c.blocks_per_unit * tile + weights;
    };
    std::optional<PatchConvPlan> best;
    std::optional<TileCycles> common;  // known from the first layout on
    double least_tile = 0;             // cycles of any
    const auto look_at = [&](const PatchTile& tile) {
        if (!is_patch_within(axes, tile, in * kernel.merge * kernel.element_bytes, shared)) return;
        PatchConvPlan next;
        next.tile = tile;
        next.slices = slices, next.tiles = ceil_div(conv.images, tile.images);
        for (int d = 0; d < kMaxKernelDims; ++d) next.tiles *= ceil_div(axes.axis[d].class_outputs(), tile.extent[d]);
        const std::int64_t units = next.tiles * slices, turns = ceil_div(units, places);
        if (best && cycles_of(turns, least_tile) >= best->cycles) return;
        // A block with one tile has one patch. Results leave as boxes where there is room for them.
        kernel.buffers = turns > 1 ? most_buffers : 1;
        for (kernel.out_stages = kernel.boxes ? kMostOutStages : 0;; --kernel.out_stages) {
            next.plan = patch_conv_layout(conv, axes.axis, tile, kernel, warp_rows);
            if (has_room(tile, next.plan, shared)) break;
            if (kernel.out_stages == 0) return;
        }
        next.kernel = kernel;
        // Slices side by side, where that takes no more turns, or not many more of lines that they share.
        const std::int64_t each = places / std::max<std::int64_t>(1, slices);
        const double most_turns = (slices_share_lines(problem, c, next.plan, arch) ? kWorthIt : 1) * double(turns);
        const bool is_interleaved = each > 0 && double(ceil_div(next.tiles, each)) <= most_turns;
        next.interleaved = is_interleaved ? to_int(slices) : 1;
        next.blocks = to_int(is_interleaved ? slices * std::min(next.tiles, each) : std::min(units, places));
        if (!common) {
            common = common_cycles(c, next.plan, arch);
            least_tile = common->with(0, arch) + arch.prices.patch_conv_search.tile_cycles.value / c.blocks_per_unit;
        }
        next.tile_cycles = tile_cycles(*common, c, next.plan, arch);
        next.cycles = cycles_of(turns, next.tile_cycles);
        if (!best || next.cycles < best->cycles) best = next;
    };
    if (shares_patch_rows(c)) {
        each_row_tile(conv.images, c, look_at);
    } else {
        each_patch_tile(axes, conv.images, c.tile.m, std::cref(look_at));  // a reference needs no memory
    }
    return best;
}

PatchConvPlan patch_conv_plan_of(const GpuGrid& grid, const Problem& problem, const KernelConfig& config) {
    const auto& args = grid.family_args.as<PatchConvArgs>();
    PatchConvPlan plan;
    plan.tile = args.tile, plan.plan = args.plan, plan.blocks = grid.blocks, plan.interleaved = args.interleaved;
    plan.tiles = std::int64_t{args.image_tiles} * args.tiles[0] * args.tiles[1] * args.tiles[2];
    plan.slices = problem.conv.g / config.num_groups_to_merge * args.plan.column_tiles;
    return plan;
}

}  // namespace tilewise
