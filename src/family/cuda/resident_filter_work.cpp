// SPDX-License-Identifier: MIT
// Convolutions whose weights stay in shared memory (kernels/cuda/resident_filter_conv).
#include <algorithm>
#include <cmath>

#include "family/cuda/chain_work.hpp"
#include "family/cuda/resident_filter_plan.hpp"
#include "family/cuda/works.hpp"
#include "problem/facts.hpp"

namespace tilewise {
namespace {

// A run of a worker, in cycles of its unit, which has nothing else to do: products are bound by the matrix unit, or by shared memory,
// also for what is copied there and for results; or what is copied, by the L2 cache.
template <class N>
N resident_run_cycles(const ResidentFilterConvArgs& s, const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.resident_filter_conv;
    constexpr double kRows = 64, kStepBytes = 32, kTaps = kResidentFilterTaps * kResidentFilterTaps;
    const double rows = double(c.tile.m) / c.wave.m, steps = (s.lines - 1) * kResidentFilterFullSteps + s.last_steps;
    const N bytes_per_cycle = N(price.shared_bytes_per_cycle);
    const N one = longest({N(c.tile.n / 2.0), N((kRows + c.tile.n) * kStepBytes) / bytes_per_cycle});
    const auto remainders = static_cast<double>(product(c.ct_stride));
    const double walks = c.op == Op::conv_fwd ? remainders : 1, classes = c.op == Op::conv_fwd ? 1 : remainders;
    const double line_bytes = (s.lines - 1) * double(resident_filter_line_bytes(kResidentFilterFullSteps)) +
                              resident_filter_line_bytes(s.last_steps);
    const double pixels = walks * s.slot_lines, copied = pixels * line_bytes;
    const N shared = named(
        "shared memory",
        term<N>("products", kTaps * steps * rows / kRows, price.product_share) * one +
            (counted<N>("copied bytes", copied) + term<N>("results", classes * rows * c.tile.n, price.result_bytes)) /
                bytes_per_cycle);
    const N fetched = named("cache", longest({N(copied) / N(price.cache_bytes_per_cycle),
                                              term<N>("pixels", pixels * s.lines, price.pixel_cycles)}) /
                                         c.cluster.n);
    return longest({shared, fetched});
}

template <class N>
N planned_resident_filter(const WorkProblem& problem, const KernelConfig& c, const ResidentFilterPlan& plan) {
    const ArchSpec& arch = problem.arch;
    const auto& price = arch.prices.resident_filter_conv;
    // Weights, and the first pixels; then as many runs as the busiest worker has, while all share the unit.
    const double rounds = std::ceil(double(plan.blocks) / arch.units);
    const double runs = std::ceil(double(plan.shape.tiles) / plan.shape.parts);
    const N each =
        longest({N(price.least_run_cycles), named("run", resident_run_cycles<N>(plan.shape, c, arch) * c.wave.m)});
    const N weights = named("weights", N(static_cast<double>(plan.weight_bytes)) / N(price.weight_bytes_per_cycle));
    const N cycles = counted<N>("rounds", rounds) * (N(price.start_cycles) + weights + counted<N>("runs", runs) * each);
    const N memory = bytes_us<N>("memory", problem.bytes, rate<N>(arch.memory_gbps));
    return longest({cycles_us<N>("cycles", cycles, arch), memory}) + N(price.launch_us);
}

}  // namespace

template <class N>
N resident_filter_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan* searched) {
    return planned_resident_filter<N>(problem, c, resident_filter_plan_of(*searched->gpu(), c)) +
           spread_chain_us<N>(problem);
}
template double resident_filter_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term resident_filter_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted resident_filter_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

}  // namespace tilewise
