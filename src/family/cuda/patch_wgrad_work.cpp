// SPDX-License-Identifier: MIT
// Backward weight by patches (kernels/cuda/patch_wgrad).
#include <algorithm>
#include <cmath>

#include "base/soft_max_bound.hpp"
#include "family/cuda/patch_least.hpp"
#include "family/cuda/patch_tile.hpp"
#include "family/cuda/patch_wgrad_plan.hpp"
#include "family/cuda/works.hpp"
#include "problem/kernel_conv.hpp"

namespace tilewise {
namespace {

// A patch's time on a unit that has enough to do: mma.sync, ldmatrix, and what is copied, by bytes and by pixels. No part is quite
// hidden by the others.
template <class N>
N patch_busy_cycles(const PatchWgradArgs& shape, const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.patch_wgrad;
    const double steps = shape.steps(), steps_m = c.tile.m / 16.0, steps_n = c.tile.n / 8.0;
    const double fetches = steps_m * c.wave.n + steps_n * c.wave.m / 2;
    const double pixels = shape.x.pixels(), rows = shape.rows();
    const double bytes = pixels * std::max(shape.x.chunks * kPatchChunkBytes, kFewChannelBytes) +
                         rows * shape.y.chunks * kPatchChunkBytes;
    return soft_max(N(price.sharpness),
                    {term<N>("products", steps * steps_m * steps_n, price.product_cycles),
                     term<N>("fetches", steps * fetches, price.fetch_cycles),
                     named("copies", counted<N>("copied bytes", bytes) / N(price.bytes_per_cycle) +
                                         term<N>("copied pixels", pixels + rows, price.pixel_cycles))});
}

template <class N>
N planned_patch_wgrad(const WorkProblem& problem, const KernelConfig& c, const PatchWgradPlan& plan) {
    const ArchSpec& arch = problem.arch;
    const auto& price = arch.prices.patch_wgrad;
    const double parts = plan.parts, blocks = static_cast<double>(plan.products) * parts;
    const double patches = std::ceil(static_cast<double>(plan.patches) / parts);
    const double rounds = std::ceil(blocks / (static_cast<double>(arch.units) * c.blocks_per_unit));
    const double sharing = std::min<double>(c.blocks_per_unit, std::ceil(blocks / arch.units));
    // However little else the unit has to do: a patch on its way, and a warp's steps one after the other.
    const double wave_steps = plan.shape.steps() / static_cast<double>(c.wave.k);
    const N waiting = named("waiting", counted<N>("patches", patches) *
                                           (N(price.patch_wait_cycles) + N(wave_steps) * N(price.step_wait_cycles)));
    const N busy = named("busy", counted<N>("patches", patches * sharing) * patch_busy_cycles<N>(plan.shape, c, arch));
    N cycles = counted<N>("rounds", rounds) * (soft_max(N(price.sharpness), {busy, waiting}) + N(price.block_cycles));
    if (c.two_stage) {
        // Every part's sums go to the workspace, and are read by a kernel with too few threads to hide what that takes.
        constexpr double kSumBytes = 8;
        const double written = parts / (c.cluster_k ? c.split_k : 1);
        const double bytes = static_cast<double>(problem.view.elements[2]) * written * kSumBytes / arch.units;
        cycles = cycles + named("sums", counted<N>("sum bytes", bytes) / N(price.sum_bytes_per_cycle));
    }
    if (c.cluster_k) cycles = cycles + N(price.cluster_cycles);  // until its parts have met
    const N memory = bytes_us<N>("memory", problem.bytes, rate<N>(arch.memory_gbps) * N(price.memory_reached_share));
    const N us = soft_max(N(price.sharpness), {cycles_us<N>("cycles", cycles, arch), memory}) + rate<N>(arch.launch_us);
    return c.two_stage ? us + N(price.second_kernel_us) : us;
}

}  // namespace

template <class N>
N patch_wgrad_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan* searched) {
    return planned_patch_wgrad<N>(problem, c, patch_wgrad_plan_of(*searched->gpu()));
}
template double patch_wgrad_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term patch_wgrad_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted patch_wgrad_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

double patch_wgrad_least(const WorkProblem& problem, const KernelConfig& c, const WorkColumns&) {
    const ArchSpec& arch = problem.arch;
    const auto& price = arch.prices.patch_wgrad;
    const KernelConv conv = kernel_conv(problem.view.problem);
    if (refuses_patch_reach(conv, nullptr)) return 0;
    // Patches have all positions between them, however they are cut, and at most the tile's each.
    const double positions = static_cast<double>(conv.images) * static_cast<double>(conv.out[0]) *
                             static_cast<double>(conv.out[1]) * static_cast<double>(conv.out[2]);
    const double of_unit = positions * static_cast<double>(patch_wgrad_products(conv, c)) / arch.units;
    const double steps = of_unit / kPatchWgradDepth, steps_m = c.tile.m / 16.0, steps_n = c.tile.n / 8.0;
    const double fetches = steps_m * c.wave.n + steps_n * c.wave.m / 2;
    const double pixels = of_unit * least_patch_pixels(patch_axes(conv, false), c.tile.k);
    const PatchWgradChunks chunks = patch_wgrad_chunks(conv, c);
    const double bytes =
        pixels * std::max(chunks.x * kPatchChunkBytes, kFewChannelBytes) + of_unit * chunks.y * kPatchChunkBytes;
    const double copies = bytes / double(price.bytes_per_cycle) + (pixels + of_unit) * double(price.pixel_cycles);
    const auto sharpness = double(price.sharpness);
    const double busy = soft_max_bound(sharpness, {steps * steps_m * steps_n * double(price.product_cycles),
                                                   steps * fetches * double(price.fetch_cycles), copies});
    const double waiting =
        (of_unit / c.tile.k * double(price.patch_wait_cycles) + steps / c.wave.k * double(price.step_wait_cycles)) /
        c.blocks_per_unit;
    double cycles = soft_max_bound(sharpness, {busy, waiting}) + double(price.block_cycles);
    if (c.two_stage) {
        constexpr double kSumBytes = 8;
        cycles +=
            static_cast<double>(problem.view.elements[2]) * kSumBytes / arch.units / double(price.sum_bytes_per_cycle);
    }
    if (c.cluster_k) cycles += double(price.cluster_cycles);
    const double memory = problem.bytes / (arch.memory_gbps * double(price.memory_reached_share) * 1e3);
    const double us =
        soft_max_bound(sharpness, {cycles / double(arch.prices.clock.cycles_per_us), memory}) + arch.launch_us;
    return c.two_stage ? us + double(price.second_kernel_us) : us;
}

}  // namespace tilewise
