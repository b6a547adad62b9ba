// SPDX-License-Identifier: MIT
#include "select/halo_conv_cost.hpp"

#include <algorithm>
#include <cmath>

#include "config/family_id.hpp"
#include "config/geometry.hpp"
#include "family/cuda/patch_tile.hpp"
#include "problem/facts.hpp"
#include "problem/kernel_conv.hpp"
#include "select/gpu_clock.hpp"
#include "select/halo_traffic.hpp"
#include "select/machine_rates.hpp"

namespace tilewise {
namespace {

// All constants were fitted to 642 times of 48 layers on an H200, of each half to see that they hold for the other; cycles are of
// kCyclesPerUs.

double up(double size, double unit) { return std::ceil(size / unit); }

// What a tile is made of, counted in instructions of a warp.
struct PatchTileWork {
    double warp_products, warp_steps;  // of the warp with most
    double fetches, products;          // ldmatrix and mma.sync, of all warps
    double stores, store_lines;        // accesses of a warp, and the lines of memory that they meet
    double copied_lines, copies;       // of the patch, by threads: lines, and copies of a warp
    double boxed_pixels;               // by the copy engine, also of results that leave
    bool boxed_results;
    double copied_bytes;
};

PatchTileWork work_of(const KernelConfig& c, const PatchConvPlan& choice) {
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

constexpr double kPatchSharpness = 2.5;  // no part is quite hidden by the others

// Of a unit that has enough blocks to be busy: what it issues, what passes through shared memory, products, and lines that leave.
// A store and a line of the patch take far more than their own instructions: places, bounds and addresses of each.
double busy_cycles(const PatchTileWork& w) {
    constexpr double kIssuedPerCycle = 4, kPerStore = 104, kPerBoxedStore = 43, kPerCopiedLine = 139, kPerCopy = 60;
    constexpr double kFetchCycles = 3.28, kProductCycles = 1.75, kStoreCycles = 8, kStoreLineCycles = 3.6;
    constexpr double kSharedBytesPerCycle = 128, kBoxedPixelCycles = 1.6;
    const double issue = (w.stores * (w.boxed_results ? kPerBoxedStore : kPerStore) + w.copied_lines * kPerCopiedLine +
                          w.copies * kPerCopy + w.fetches + w.products) /
                         kIssuedPerCycle;
    const double shared = w.fetches * kFetchCycles + w.copied_bytes / kSharedBytesPerCycle + w.stores * kStoreCycles;
    return side_by_side({issue, shared, w.products * kProductCycles, w.store_lines * kStoreLineCycles,
                         w.boxed_pixels * kBoxedPixelCycles},
                        kPatchSharpness);
}

// From the beginning of a tile to its end, however much else the unit has to do: a warp's steps wait for their operands, the
// results of a product for the last step, and all for the patch, unless the copy engine fetches it. Where a step has all rows of
// a column of taps, there is enough to do meanwhile.
double waiting_cycles(const PatchTileWork& w, const KernelConfig& c) {
    constexpr double kLines = 930, kBoxes = 70, kProduct = 1680, kStep = 90, kStepOfRows = 3, kOneBuffer = 130;
    return (family_of(c) == FamilyId::patch_box_conv ? kBoxes : kLines) + w.warp_products * kProduct +
           w.warp_steps * (shares_patch_rows(c) ? kStepOfRows : kStep) + (c.stages < 2 ? kOneBuffer : 0);
}

// The copy engine's boxes of channels that are no whole pieces of memory take longer than their lines; from six layers of groups of 24
// and 40 channels, where all others are within 10 %.
double between_pieces(const Problem& p, const KernelConfig& c) {
    constexpr std::int64_t kPieceBytes = 32;
    constexpr double kBetween = 1.35;
    const KernelConv conv = kernel_conv(p);
    const std::int64_t channels = (p.op == Op::conv_bwd_data ? conv.k : conv.c) * c.num_groups_to_merge;
    return family_of(c) == FamilyId::patch_box_conv && channels * bytes_of(c.dtype) % kPieceBytes != 0 ? kBetween : 1;
}

// Weights come in chunks, all on their way at once, or one by one into the diagonals of zeros, four of each warp at a time.
double weights_us(const Problem& p, const KernelConfig& c, const PatchConvLayout& plan) {
    constexpr double kUsPerByte = 9.7e-5, kUsPerBatch = 0.49;
    const KernelConv conv = kernel_conv(p);
    double us = static_cast<double>(plan.products) * plan.product_bytes * kUsPerByte;
    if (patch_conv_kernel(c).diagonal) {
        constexpr double kBatch = 4, kLanes = 32;
        const auto row = static_cast<double>(product(p.conv.filter) * conv.c),
                   lines = static_cast<double>(c.num_groups_to_merge * conv.k);
        us += up(row, kLanes) * up(lines, kBatch * static_cast<double>(wave_count(c))) * kUsPerBatch;
    }
    return us;
}

}  // namespace

double halo_conv_us(const ProblemView& view, const KernelConfig& c, const ArchSpec& arch) {
    constexpr double kNever = 1e9, kSetUpUs = 1.0, kMemoryReached = 0.95;
    const auto choice = patch_conv_plan(view.problem, c, arch);
    if (!choice) return kNever;
    const PatchTileWork work = work_of(c, *choice);
    const double tiles = up(static_cast<double>(choice->tiles) * static_cast<double>(choice->slabs), choice->blocks);
    const double sharing = std::min<double>(c.blocks_per_unit, up(choice->blocks, arch.units));
    const double cycles =
        side_by_side({tiles * sharing * busy_cycles(work), tiles * waiting_cycles(work, c)}, kPatchSharpness) *
        between_pieces(view.problem, c);
    const double memory_us =
        halo_traffic_bytes(view.problem, c, *choice, arch) / (arch.memory_gbps * kMemoryReached * 1e3);
    const double slabs_of_block = 1 + std::min(tiles, static_cast<double>(choice->slabs) / choice->blocks);
    return side_by_side({cycles / kCyclesPerUs, memory_us}, kPatchSharpness) + arch.launch_us + kSetUpUs +
           slabs_of_block * weights_us(view.problem, c, choice->plan);
}

}  // namespace tilewise
