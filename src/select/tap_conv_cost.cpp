// SPDX-License-Identifier: MIT
#include "select/tap_conv_cost.hpp"

#include <algorithm>
#include <cmath>

#include "family/cuda/resident_filter_plan.hpp"
#include "problem/facts.hpp"
#include "select/gpu_clock.hpp"
#include "select/machine_rates.hpp"

namespace tilewise {
namespace {

// All constants were fitted to 235 times of 28 layers on an H200 (they are off by 7 % in the root mean square); cycles are of kCyclesPerUs.

// A run of a worker, in cycles of its unit, which has nothing else to do: products are bound by the matrix unit, or by shared memory,
// which gives 128 bytes a cycle, also for what is copied there and for results; or what is copied, by the L2 cache.
double run_cycles(const ResidentFilterConvArgs& s, const KernelConfig& c) {
    constexpr double kBytesPerCycle = 128, kRows = 64, kStepBytes = 32,
                     kTaps = kResidentFilterTaps * kResidentFilterTaps;
    constexpr double kReached = 0.94, kResultBytes = 17, kCacheBytesPerCycle = 26.6, kPixel = 1.37;
    const double rows = double(c.tile.m) / c.wave.m, steps = (s.lines - 1) * kResidentFilterFullSteps + s.last_steps;
    const double one = std::max(c.tile.n / 2.0, (kRows + c.tile.n) * kStepBytes / kBytesPerCycle) * kReached;
    const auto remainders = static_cast<double>(product(c.ct_stride));
    const double walks = c.op == Op::conv_fwd ? remainders : 1, classes = c.op == Op::conv_fwd ? 1 : remainders;
    const double line_bytes = (s.lines - 1) * double(resident_filter_line_bytes(kResidentFilterFullSteps)) +
                              resident_filter_line_bytes(s.last_steps);
    const double pixels = walks * s.slot_lines, copied = pixels * line_bytes;
    const double shared =
        kTaps * steps * rows / kRows * one + (copied + classes * rows * c.tile.n * kResultBytes) / kBytesPerCycle;
    const double fetched = std::max(copied / kCacheBytesPerCycle, pixels * s.lines * kPixel) / c.cluster.n;
    return std::max(shared, fetched);
}

}  // namespace

double tap_conv_us(const ProblemView& view, const KernelConfig& c, const ArchSpec& arch) {
    constexpr double kNever = 1e9;
    const auto plan = resident_filter_plan(view.problem, c, arch);
    if (!plan) return kNever;
    // Weights, and the first pixels; then as many runs as the busiest worker has, while all share the unit.
    constexpr double kStartCycles = 5800, kWeightBytesPerCycle = 16, kLeastRun = 1360, kLaunchUs = 0.7;
    const double rounds = std::ceil(double(plan->blocks) / arch.units);
    const double runs = std::ceil(double(plan->shape.tiles) / plan->shape.parts);
    const double each = std::max(kLeastRun, run_cycles(plan->shape, c) * c.wave.m);
    const double cycles =
        rounds * (kStartCycles + static_cast<double>(plan->weight_bytes) / kWeightBytesPerCycle + runs * each);
    const double memory_us = bytes_moved(view.problem) / (arch.memory_gbps * 1e3);
    return std::max(cycles / kCyclesPerUs, memory_us) + kLaunchUs;
}

}  // namespace tilewise
