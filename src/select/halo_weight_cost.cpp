// SPDX-License-Identifier: MIT
#include "select/halo_weight_cost.hpp"

#include <algorithm>
#include <cmath>

#include "family/cuda/patch_wgrad_plan.hpp"
#include "problem/facts.hpp"
#include "select/gpu_clock.hpp"
#include "select/machine_rates.hpp"

namespace tilewise {
namespace {

// All constants were fitted to 248 times of 43 layers on an H200, of each half to see that they hold for the other; cycles are of
// kCyclesPerUs.

constexpr double kWeightSharpness = 2.5;  // no part is quite hidden by the others

// A patch's time on a unit that has enough to do: mma.sync, ldmatrix, and what is copied, by bytes and by pixels.
double patch_busy_cycles(const PatchWgradArgs& shape, const KernelConfig& c) {
    constexpr double kProduct = 2.5, kFetch = 4.45, kBytesPerCycle = 24, kPixel = 0.5;
    const double steps = shape.steps(), steps_m = c.tile.m / 16.0, steps_n = c.tile.n / 8.0;
    const double fetches = steps_m * c.wave.n + steps_n * c.wave.m / 2;
    const double pixels = shape.x.pixels(), rows = shape.rows();
    const double bytes = pixels * std::max(shape.x.chunks * kPatchChunkBytes, kFewChannelBytes) +
                         rows * shape.y.chunks * kPatchChunkBytes;
    return side_by_side({steps * steps_m * steps_n * kProduct, steps * fetches * kFetch,
                         bytes / kBytesPerCycle + (pixels + rows) * kPixel},
                        kWeightSharpness);
}

}  // namespace

double halo_weight_us(const ProblemView& view, const KernelConfig& c, const ArchSpec& arch) {
    constexpr double kNever = 1e9, kSecondKernelUs = 2.0, kMemoryReached = 0.9;
    const auto plan = patch_wgrad_plan(view.problem, c, arch);
    if (!plan) return kNever;
    const double parts = plan->parts, blocks = static_cast<double>(plan->products) * parts;
    const double patches = std::ceil(static_cast<double>(plan->patches) / parts);
    const double rounds = std::ceil(blocks / (static_cast<double>(arch.units) * c.blocks_per_unit));
    const double sharing = std::min<double>(c.blocks_per_unit, std::ceil(blocks / arch.units));
    // However little else the unit has to do: a patch on its way, and a warp's steps one after the other.
    constexpr double kPatch = 2100, kStep = 41, kBlock = 7000;
    const double waiting = patches * (kPatch + plan->shape.steps() / static_cast<double>(c.wave.k) * kStep);
    const double busy = patches * sharing * patch_busy_cycles(plan->shape, c);
    // Every part's sums go to the workspace, and are read by a kernel with too few threads to hide what that takes.
    constexpr double kSumBytes = 8, kSumBytesPerCycle = 8.7;
    const double written = c.two_stage ? parts / (c.cluster_k ? c.split_k : 1) : 0;
    const double sums = static_cast<double>(view.elements[2]) * written * kSumBytes / (kSumBytesPerCycle * arch.units);
    constexpr double kClusterCycles = 12000;  // until its parts have met
    const double meeting = c.cluster_k ? kClusterCycles : 0;
    const double memory_us = bytes_moved(view.problem) / (arch.memory_gbps * kMemoryReached * 1e3);
    const double cycles = rounds * (side_by_side({busy, waiting}, kWeightSharpness) + kBlock) + sums + meeting;
    return side_by_side({cycles / kCyclesPerUs, memory_us}, kWeightSharpness) + arch.launch_us +
           (c.two_stage ? kSecondKernelUs : 0);
}

}  // namespace tilewise
