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

// Extents that cut `size` into 1, 2, 3, ... about even parts, from the longest that fits on, and how many; the last halve each other.
template <class Visit>
void each_extent(unsigned size, unsigned most, Visit visit) {
    constexpr int kEvenParts = 6;
    const auto divide_up = [](unsigned all, unsigned by) { return (all + by - 1) / by; };
    unsigned cuts = divide_up(size, std::max(1U, most)), last = 0;
    for (int i = 0; cuts <= size; ++i) {
        const unsigned extent = divide_up(size, cuts);
        if (extent != last) visit(static_cast<int>(extent), static_cast<int>(divide_up(size, extent)));
        last = extent;
        cuts = i < kEvenParts ? cuts + 1 : cuts * 2;
    }
}

// Cycles of a unit that a tile takes: what ldmatrix and the matrix units have to do, what comes through the L2 cache, and
// what is the same for every tile. What takes less time than the rest is hidden but for a part. Beside that every tile has its
// beginning and end, which is longer where threads write results, and threads that copy patches take turns with the arithmetic. Half
// sectors of the cache take their time: 32 groups of 8 channels at 56 x 56, stride 2, took 240 us in pieces of 16 bytes, 46 in pieces
// of 64.
class TileCycles {
public:
    // Any layout of the problem does: all have the same answers to what is asked here.
    TileCycles(const KernelConfig& c, const PatchConvLayout& p, const ArchSpec& arch)
        : price_(arch.prices.patch_conv_search), chunks_(p.patch.chunks), blocks_(c.blocks_per_unit) {
        const double warp_rows = static_cast<double>(c.tile.m) / c.wave.m;
        const double columns = static_cast<double>(c.tile.n) / c.wave.n;
        // Rows that warps share are fetched once for the three taps of a column.
        const double steps_m = warp_rows / kPatchStepRows,
                     fetched = shares_patch_rows(c) ? (steps_m + 2) / (3 * steps_m) : 1;
        const double lines = fetched * c.tile.m + columns * c.tile.m / warp_rows;
        const double steps = static_cast<double>(p.steps) * p.products;
        shared_ = steps * lines * 2 * kPatchChunkBytes / price_.shared_bytes_per_cycle.value;
        products_ = steps * c.tile.m * columns * c.warp_tile.k / price_.products_per_cycle.value;
        const bool in_halves = p.out_channels * bytes_of(c.dtype_out) < 2 * kPatchChunkBytes;
        const double halves = in_halves ? price_.half_cycles.value * c.tile.m * p.products * p.classes : 0;
        writes_ = price_.write_cycles.value / blocks_ + halves;
        copy_cycles_ = family_of(c) == FamilyId::patch_box_conv ? 0 : price_.copy_cycles.value;
    }

    // With a patch of so many pixels, whose results leave by threads or as boxes.
    double of(int pixels, bool by_threads) const {
        const double chunks = static_cast<double>(pixels) * chunks_;
        const double cached = chunks * kPatchChunkBytes / price_.cache_bytes_per_cycle.value;
        const double copies = chunks_ > 1 ? cached : cached * price_.half_sector_share.value;
        const double longest = std::max({shared_, products_, copies});
        return longest + price_.hidden_share.value * (shared_ + products_ + copies - longest) +
               price_.tile_cycles.value / blocks_ + ((by_threads ? writes_ : 0) + chunks * copy_cycles_);
    }

private:
    const decltype(ArchSpec().prices.patch_conv_search)& price_;
    int chunks_, blocks_;
    double shared_, products_, writes_, copy_cycles_;
};

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

void each_patch_tile(const PatchAxes& axes, std::int64_t images, int most_rows, std::int64_t most_pixels,
                     const std::function<void(const CutPatch&)>& visit) {
    CutPatch cut{};
    const auto each_along = [&](int d, int most, std::int64_t pixels, std::int64_t tiles, const auto& next) {
        const PatchAxis& axis = axes.axis[d];
        each_extent(static_cast<unsigned>(axis.class_outputs()), static_cast<unsigned>(most),
                    [&](int extent, int count) {
                        cut.tile.extent[d] = extent;
                        const std::int64_t staged = pixels * ((std::int64_t{extent} - 1) * axis.in_step + axis.span);
                        if (staged <= most_pixels) next(extent, staged, tiles * count);
                    });
    };
    each_along(2, most_rows, 1, 1, [&](int width, std::int64_t line, std::int64_t across) {
        each_along(1, most_rows / width, line, across, [&](int height, std::int64_t plane, std::int64_t down) {
            const int area = width * height;
            each_along(0, most_rows / area, plane, down, [&](int depth, std::int64_t box, std::int64_t boxes) {
                const auto take = [&](int n, std::int64_t sets) {
                    if (n * box > most_pixels) return;
                    cut.tile.images = n, cut.tiles = boxes * sets, cut.pixels = to_int(n * box);
                    visit(cut);
                };
                if (boxes > 1) return take(1, images);
                const int most = std::min(most_rows / (area * depth), (1 << kPatchImageBits) - 1);
                each_extent(static_cast<unsigned>(images), static_cast<unsigned>(most), take);
            });
        });
    });
}

namespace {

// Tiles of 16 columns, their rows whole steps of a warp.
void each_row_tile(const PatchAxes& axes, std::int64_t images, const KernelConfig& c, std::int64_t most_pixels,
                   const std::function<void(const CutPatch&)>& visit) {
    const int warp_steps = c.tile.m / c.wave.m / kPatchStepRows;
    const std::int64_t across = ceil_div(axes.axis[2].class_outputs(), kPatchStepRows);
    for (int height = warp_steps; height * kPatchStepRows <= c.tile.m; height += warp_steps) {
        const std::int64_t boxes =
            across * ceil_div(axes.axis[1].class_outputs(), height) * axes.axis[0].class_outputs();
        const auto take = [&](int n) {
            const PatchTile tile{n, {1, height, kPatchStepRows}};
            if (!is_patch_within(axes, tile, 1, most_pixels)) return;
            visit({tile, boxes * ceil_div(images, n), patch_shape(axes.axis, tile, 1).pixels()});
        };
        const int most = to_int(std::min<std::int64_t>(images, c.tile.m / (height * kPatchStepRows)));
        take(most);
        if (most > 1) take(1);
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
    const std::int64_t in = kernel.backward_data ? conv.k : conv.c;
    const std::int64_t most_pixels = shared / (in * kernel.merge * kernel.element_bytes);
    constexpr PatchTile kPixel = {1, {1, 1, 1}};
    if (!is_patch_within(axes, kPixel, 1, most_pixels)) return std::nullopt;
    // The cost of the least tile, and what it shares with all.
    const PatchConvLayout least = patch_conv_layout(conv, axes.axis, kPixel, kernel, warp_rows);
    const TileCycles tile_cycles(c, least, arch);
    const std::int64_t slices = conv.groups / kernel.merge * least.column_tiles;
    const std::int64_t places = std::int64_t{arch.units} * c.blocks_per_unit;
    const int most_buffers = kernel.buffers;
    constexpr double kWorthIt = 1.15;  // turns: pieces of 16 bytes took 2.4 times as long one after the other
    const double weights = weight_cycles(conv, kernel, arch);
    // Blocks that share a unit share what it can do in a cycle.
    const auto cycles_of = [&](std::int64_t turns, double tile) {
        return static_cast<double>(turns) * c.blocks_per_unit * tile + weights;
    };
    std::optional<PatchConvPlan> best;
    const auto look_at = [&](const CutPatch& cut) {
        const std::int64_t units = cut.tiles * slices, turns = ceil_div(units, places);
        // No layout takes less.
        if (best && cycles_of(turns, tile_cycles.of(cut.pixels, !kernel.boxes)) >= best->cycles) return;
        // A block with one tile has one patch. Results leave as boxes where there is room for them.
        kernel.buffers = turns > 1 ? most_buffers : 1;
        if (least.patches + std::int64_t{kernel.buffers} * cut.pixels * least.patch.pitch > shared) return;
        PatchConvPlan next;
        next.tile = cut.tile, next.tiles = cut.tiles, next.slices = slices;
        for (kernel.out_stages = kernel.boxes ? kMostOutStages : 0;; --kernel.out_stages) {
            next.plan = patch_conv_layout(conv, axes.axis, cut.tile, kernel, warp_rows);
            if (has_room(cut.tile, next.plan, shared)) break;
            if (kernel.out_stages == 0) return;
        }
        next.kernel = kernel;
        // Slices side by side, where that takes no more turns, or not many more of lines that they share.
        const std::int64_t each = places / std::max<std::int64_t>(1, slices);
        const double most_turns = (slices_share_lines(problem, c, next.plan, arch) ? kWorthIt : 1) * double(turns);
        const bool is_interleaved = each > 0 && double(ceil_div(next.tiles, each)) <= most_turns;
        next.interleaved = is_interleaved ? to_int(slices) : 1;
        next.blocks = to_int(is_interleaved ? slices * std::min(next.tiles, each) : std::min(units, places));
        next.tile_cycles = tile_cycles.of(next.plan.patch.pixels(), next.plan.out_stages == 0);
        next.cycles = cycles_of(turns, next.tile_cycles);
        if (!best || next.cycles < best->cycles) best = next;
    };
    if (shares_patch_rows(c)) {
        each_row_tile(axes, conv.images, c, most_pixels, std::cref(look_at));  // a reference needs no memory
    } else {
        each_patch_tile(axes, conv.images, c.tile.m, most_pixels, std::cref(look_at));
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
