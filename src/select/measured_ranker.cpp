// SPDX-License-Identifier: MIT
#include "select/measured_ranker.hpp"

#include <fmt/core.h>

#include "problem/problem_text.hpp"
#include "select/shortlist.hpp"

namespace tilewise {

// A GPU has more kinds of kernels, and times one in a few hundredths of a second.
KernelList kernels_to_measure(const Selection& selection, const SelectOptions& options, const ArchSpec& arch) {
    constexpr std::size_t kOnCpu = 8, kOnGpu = 16;
    const std::size_t usual = arch.is_gpu() ? kOnGpu : kOnCpu;
    return shortlist(selection.candidates, options.measure_top > 0 ? options.measure_top : usual);
}

Result<Ranked> rank_by_measuring(const RankContext& context, Selection& selection) {
    Device& device = *context.device;
    const KernelList best = kernels_to_measure(selection, context.options, device.arch());
    MeasureOptions measuring;
    constexpr double kSecondsEachOnGpu = 0.025;
    if (device.arch().is_gpu()) measuring.seconds_each = kSecondsEachOnGpu;
    measuring.progress = context.options.progress;
    measuring.records = context.records;
    const auto outcome = measure_candidates(context.problem, best, device, *context.builder, measuring);
    if (!outcome) return outcome.error();
    if (outcome->measured.empty()) {
        return Error{ErrorCode::device, fmt::format("none of {} kernels could be measured; the first: {}", best.size(),
                                                    outcome->failed.empty() ? "" : outcome->failed.front().reason)};
    }
    const Measured& winner = outcome->measured.front();
    Ranked ranked{Plan{winner.kernel, PlanSource::measured,
                       fmt::format("fastest of {} measured: {:.2f} us", outcome->measured.size(), winner.us)}};
    if (!outcome->failed.empty()) {
        const Failed& first = outcome->failed.front();
        ranked.notes.push_back({"measure", ErrorCode::toolchain,
                                fmt::format("{} of the best {} kernels could not be measured; the first, {}: {}",
                                            outcome->failed.size(), best.size(), first.kernel->name, first.reason)});
    }
    if (context.tuning) {
        // A result that cannot be kept is still a result.
        const auto kept = context.tuning->add(
            {device.identity(), print_problem(context.problem), winner.kernel->name, winner.code_digest, winner.us});
        if (!kept) ranked.notes.push_back({"tuning", kept.error().code, kept.error().message});
    }
    ranked.notes.insert(ranked.notes.end(), outcome->notes.begin(), outcome->notes.end());
    return ranked;
}

}  // namespace tilewise
