// SPDX-License-Identifier: MIT
#include "select/measure_candidates.hpp"

#include <algorithm>

#include "measure/bound_run.hpp"
#include "measure/timing.hpp"

namespace tilewise {

Result<MeasureOutcome> measure_candidates(const Problem& problem, const KernelList& kernels, Device& device,
                                          Builder& builder, const MeasureOptions& options) {
    // Rotating sets beyond the cache, unless that takes more memory than allowed: then what fits, at least one.
    const std::int64_t wanted = std::min(2 * device.arch().cache_bytes, options.max_bytes);
    constexpr int kMostSets = 64;
    auto sets = make_tensor_sets(problem, wanted, 1, kMostSets);
    if (!sets) return sets.error();

    MeasureOutcome outcome;
    std::vector<BoundRun> runs;
    const auto tell = [&](std::size_t done, std::string_view doing) {
        if (options.progress) options.progress(done, kernels.size() + 1, doing);  // one step each, and timing them all
    };
    for (const KernelPtr& kernel : kernels) {
        tell(outcome.measured.size() + outcome.failed.size(), kernel->name);
        auto ready = Executable::prepare(problem, *kernel, device, builder);
        if (!ready) {
            outcome.failed.push_back({kernel, ready.error().message});
            continue;
        }
        const std::string digest = ready->built().digest;
        auto bound = BoundRun::make(std::make_shared<const Executable>(std::move(*ready)), *sets,
                                    suggested_alpha(problem), problem.beta ? 1.0f : 0.0f);
        auto status = bound ? bound->run() : Status(bound.error());
        if (!status) {
            outcome.failed.push_back({kernel, status.error().message});
            continue;
        }
        runs.push_back(std::move(*bound));
        outcome.measured.push_back({kernel, digest, 0, 0});
    }

    tell(kernels.size(), "timing");
    TimingOptions timing;
    timing.sets = static_cast<int>(sets->size());
    timing.max_seconds = options.seconds_each;
    timing.warmup_seconds = options.seconds_each / 10;
    std::vector<TimedCall> calls;
    for (const BoundRun& run : runs) {
        calls.emplace_back([&run](int set) { (void)run.run(static_cast<std::size_t>(set)); });
    }
    const auto results = interleave(calls, timing);
    for (std::size_t i = 0; i < results.size(); ++i) {
        outcome.measured[i].us = results[i].seconds * 1e6;
        outcome.measured[i].spread = results[i].spread;
    }
    std::stable_sort(outcome.measured.begin(), outcome.measured.end(),
                     [](const Measured& a, const Measured& b) { return a.us < b.us; });
    return outcome;
}

}  // namespace tilewise
