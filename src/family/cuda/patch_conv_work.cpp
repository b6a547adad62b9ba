// SPDX-License-Identifier: MIT
// Convolutions that stage patches of pixels (kernels/cuda/patch_conv), forward and backward data.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rounding.hpp"
#include "base/soft_max_bound.hpp"
#include "config/family_id.hpp"
#include "config/geometry.hpp"
#include "family/cuda/chain_work.hpp"
#include "family/cuda/patch_fit.hpp"
#include "family/cuda/patch_least.hpp"
#include "family/cuda/patch_tile.hpp"
#include "family/cuda/patch_traffic.hpp"
#include "family/cuda/works.hpp"
#include "problem/facts.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {
namespace {

double up(double size, double unit) { return std::ceil(size / unit); }

// The work of a tile, counted in instructions of a warp.
struct PatchTileWork {
    double warp_products, warp_steps;  // of the warp with most
    double fetches, products;          // ldmatrix and mma.sync, of all warps
    double stores, store_lines;        // accesses of a warp, and the lines of memory that they meet
    double copied_lines, copies;       // of the patch, by threads: lines, and copies of a warp
    double boxed_pixels;               // by the copy engine, also of results that leave
    bool boxed_results;
    double copied_bytes;
};

PatchTileWork patch_tile_work(const KernelConfig& c, const PatchConvPlan& choice) {
    const PatchConvLayout& p = choice.plan;
    const double rows = static_cast<double>(c.tile.m) / c.wave.m, columns = static_cast<double>(c.tile.n) / c.wave.n;
    const double steps_m = rows / kPatchStepRows, steps_n = columns / kPatchMatrix, turns = up(p.products, c.wave.n);
    const double steps = static_cast<double>(p.steps) * p.products * c.wave.m;
    // Rows of pixels below each other are fetched once for the three taps of a column.
    const double fetched_rows = shares_patch_rows(c) ? (steps_m + 2) / 3 : steps_m;
    const double results = static_cast<double>(p.products) * p.classes;
    const double line_bytes = 128,
                 result_bytes = std::min<double>(columns, p.out_channels) * static_cast<double>(bytes_of(c.dtype_out));
    PatchTileWork w{};
    w.warp_products = turns * p.classes;
    w.warp_steps = turns * p.steps;
    w.fetches = steps * (fetched_rows + up(steps_n, 2));
    w.products = steps * steps_m * steps_n;
    w.stores = results * c.wave.m * up(rows * up(columns, c.vector_c), 32);
    w.boxed_results = p.out_stages > 0;
    w.store_lines = w.boxed_results ? 0 : results * choice.tile.rows() * up(result_bytes, line_bytes);
    if (family_of(c) == FamilyId::patch_box_conv) {
        w.boxed_pixels = p.patch.pixels() + (w.boxed_results ? choice.tile.rows() : 0);
    } else {
        const int copied_pixels = 32 / p.patch.chunks;
        const double step = p.patch.steps[2], pixels = copied_pixels;
        w.copied_lines = static_cast<double>(p.patch.images) * p.patch.depth * p.patch.height;
        w.copies = w.copied_lines * step * up(up(p.patch.columns, step), pixels);
    }
    w.copied_bytes = static_cast<double>(p.patch.pixels()) * p.patch.chunks * kPatchChunkBytes;
    return w;
}

// The cycles of a unit that has enough blocks to be busy: what it issues, what passes through shared memory, products, and lines
// that leave. A store and a line of the patch take far more than their own instructions: places, bounds and addresses of each. No
// part is quite hidden by the others.
template <class N>
N busy_cycles(const PatchTileWork& w, const ArchSpec& arch) {
    const auto& price = arch.prices.patch_conv;
    const N issue = named(
        "issue",
        (term<N>("stores", w.stores, w.boxed_results ? price.boxed_store_instructions : price.store_instructions) +
         term<N>("copied lines", w.copied_lines, price.copied_line_instructions) +
         term<N>("copies", w.copies, price.copy_instructions) +
         counted<N>("fetches and products", w.fetches + w.products)) /
            N(price.issued_per_cycle));
    const N shared = named("shared memory", term<N>("fetches", w.fetches, price.fetch_cycles) +
                                                N(w.copied_bytes) / N(price.shared_bytes_per_cycle) +
                                                term<N>("stores", w.stores, price.store_cycles));
    return soft_max(N(price.sharpness), {issue, shared, term<N>("products", w.products, price.product_cycles),
                                         term<N>("lines written", w.store_lines, price.store_line_cycles),
                                         term<N>("pixels in boxes", w.boxed_pixels, price.boxed_pixel_cycles)});
}

// From the beginning of a tile to its end, however much else the unit has to do: a warp's steps wait for their operands, the
// results of a product for the last step, and all for the patch, unless the copy engine fetches it. Where a step has all rows of
// a column of taps, there is enough to do meanwhile.
template <class N>
N waiting_cycles(const PatchTileWork& w, const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.patch_conv;
    const bool boxes = family_of(c) == FamilyId::patch_box_conv;
    const N cycles = N(boxes ? price.boxes_wait_cycles : price.lines_wait_cycles) +
                     term<N>("products of a warp", w.warp_products, price.product_wait_cycles) +
                     term<N>("steps of a warp", w.warp_steps,
                             shares_patch_rows(c) ? price.rows_step_wait_cycles : price.step_wait_cycles);
    return c.stages < 2 ? cycles + N(price.one_buffer_wait_cycles) : cycles;
}

// Whether the copy engine's boxes have channels that are no whole pieces of memory, which take longer than their lines; from six
// layers of groups of 24 and 40 channels, where all others are within 10 %.
bool is_between_pieces(const Problem& p, const KernelConfig& c) {
    constexpr std::int64_t kPieceBytes = 32;
    const KernelConv conv = kernel_conv(p);
    const std::int64_t channels = (p.op == Op::conv_bwd_data ? conv.k : conv.c) * c.num_groups_to_merge;
    return family_of(c) == FamilyId::patch_box_conv && channels * bytes_of(c.dtype) % kPieceBytes != 0;
}

// Weights come in chunks, all on their way at once, or one by one into the diagonals of zeros, four of each warp at a time.
template <class N>
N weights_us(const Problem& p, const KernelConfig& c, const PatchConvLayout& plan, const ArchSpec& arch) {
    const auto& price = arch.prices.patch_conv;
    const KernelConv conv = kernel_conv(p);
    const N us = term<N>("weight bytes", static_cast<double>(plan.products) * plan.product_bytes, price.weight_byte_us);
    if (!patch_conv_kernel(c).diagonal) return us;
    constexpr double kBatch = 4, kLanes = 32;
    const auto row = static_cast<double>(product(p.conv.filter) * conv.c),
               lines = static_cast<double>(c.num_groups_to_merge * conv.k);
    const double batches = up(row, kLanes) * up(lines, kBatch * static_cast<double>(wave_count(c)));
    return us + term<N>("weight batches", batches, price.weight_batch_us);
}

template <class N>
N planned_patch_conv(const WorkProblem& problem, const KernelConfig& c, const PatchConvPlan& choice) {
    const ArchSpec& arch = problem.arch;
    const auto& price = arch.prices.patch_conv;
    const Problem& p = problem.view.problem;
    const PatchTileWork work = patch_tile_work(c, choice);
    const double tiles = up(static_cast<double>(choice.tiles) * static_cast<double>(choice.slices), choice.blocks);
    const double sharing = std::min<double>(c.blocks_per_unit, up(choice.blocks, arch.units));
    N cycles =
        soft_max(N(price.sharpness), {named("busy", counted<N>("tiles", tiles * sharing) * busy_cycles<N>(work, arch)),
                                      named("waiting", counted<N>("tiles", tiles) * waiting_cycles<N>(work, c, arch))});
    if (is_between_pieces(p, c)) cycles = cycles * N(price.between_pieces_share);
    const N memory = bytes_us<N>("memory", patch_traffic_bytes(p, c, choice, arch),
                                 rate<N>(arch.memory_gbps) * N(price.memory_reached_share));
    const double slices_of_block = 1 + std::min(tiles, static_cast<double>(choice.slices) / choice.blocks);
    return soft_max(N(price.sharpness), {cycles_us<N>("cycles", cycles, arch), memory}) + rate<N>(arch.launch_us) +
           N(price.set_up_us) +
           named("weights", counted<N>("slices", slices_of_block) * weights_us<N>(p, c, choice.plan, arch));
}

}  // namespace

template <class N>
N patch_conv_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan* searched) {
    return planned_patch_conv<N>(problem, c, patch_conv_plan_of(*searched->gpu(), problem.view.problem, c)) +
           spread_chain_us<N>(problem);
}
template double patch_conv_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term patch_conv_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted patch_conv_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

namespace {

// The parts of a plan that every tile has in common.
PatchConvPlan common_plan(const KernelConv& conv, const PatchAxes& axes, const KernelConfig& c) {
    const PatchConvKernel kernel = patch_conv_kernel(c);
    const std::int64_t in = kernel.backward_data ? conv.k : conv.c, out = kernel.backward_data ? conv.c : conv.k;
    const int groups = patch_product_groups(conv, kernel);
    PatchConvPlan plan{};
    PatchConvLayout& layout = plan.plan;
    layout.product_groups = groups, layout.products = kernel.merge / groups;
    layout.chunks = to_int(in * groups * kernel.element_bytes / kPatchChunkBytes);
    layout.classes = axes.axis[0].classes * axes.axis[1].classes * axes.axis[2].classes;
    for (int i = 0; i < layout.classes; ++i) layout.steps += patch_class_steps(axes.axis, i, layout.chunks);
    layout.patch.chunks = std::max(1, layout.products * layout.chunks), layout.patch.steps[2] = 1;
    plan.slices = conv.groups / kernel.merge * ceil_div(out * groups, std::int64_t{kernel.columns});
    std::int64_t positions = conv.images;
    for (const PatchAxis& axis : axes.axis) positions *= axis.class_outputs();
    plan.tiles = ceil_div(positions, std::int64_t{c.tile.m});
    return plan;
}

// The least that a tile copies, in the mean of as few tiles as there can be: a patch has no fewer pixels than its outputs reach together,
// in lines that are no longer than those of the longest tile.
void add_least_copies(PatchTileWork& w, const PatchAxes& axes, const KernelConfig& c, const PatchConvPlan& plan,
                      double positions) {
    const PatchShape& patch = plan.plan.patch;
    const double pixels = positions / static_cast<double>(plan.tiles) * least_patch_pixels(axes, c.tile.m);
    w.copied_bytes = pixels * patch.chunks * kPatchChunkBytes;
    if (family_of(c) == FamilyId::patch_box_conv) {
        w.boxed_pixels = pixels;
        return;
    }
    const PatchAxis& line = axes.axis[2];
    const double longest = (std::min(line.class_outputs(), c.tile.m) - 1.0) * line.in_step + line.span;
    const int copied_pixels = 32 / patch.chunks;
    w.copied_lines = pixels / longest, w.copies = pixels / copied_pixels;
}

}  // namespace

double patch_conv_least(const WorkProblem& problem, const KernelConfig& c, const WorkColumns&) {
    const ArchSpec& arch = problem.arch;
    const auto& price = arch.prices.patch_conv;
    const Problem& p = problem.view.problem;
    if (refuses_patch(p, c, arch, nullptr)) return std::numeric_limits<double>::infinity();
    const KernelConv conv = kernel_conv(p);
    const PatchAxes axes = patch_axes(conv, c.op == Op::conv_bwd_data);
    const PatchConvPlan plan = common_plan(conv, axes, c);
    PatchTileWork work = patch_tile_work(c, plan);
    work.stores = 0;  // what leaves as boxes is not known yet
    auto positions = static_cast<double>(conv.images);
    for (const PatchAxis& axis : axes.axis) positions *= axis.class_outputs();
    add_least_copies(work, axes, c, plan, positions);
    // A plan has at least so many tiles, and no more blocks than places.
    const double tiles = static_cast<double>(plan.tiles) * static_cast<double>(plan.slices);
    const double of_unit = tiles / arch.units, of_block = std::max(1.0, of_unit / c.blocks_per_unit);
    const auto sharpness = double(price.sharpness);
    double cycles = soft_max_bound(sharpness, {of_unit * busy_cycles<Least>(work, arch).value,
                                               of_block * waiting_cycles<Least>(work, c, arch).value});
    if (is_between_pieces(p, c)) cycles *= double(price.between_pieces_share);
    // Weights may be left out of the traffic.
    const double bytes = problem.bytes - static_cast<double>(problem.view.elements[1] * bytes_of(c.dtype_b));
    const double memory = bytes / (arch.memory_gbps * double(price.memory_reached_share) * 1e3);
    return soft_max_bound(sharpness, {cycles / double(arch.prices.clock.cycles_per_us), memory}) + arch.launch_us +
           double(price.set_up_us) + spread_chain_us<double>(problem);
}

}  // namespace tilewise
