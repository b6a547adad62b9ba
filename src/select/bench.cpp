// SPDX-License-Identifier: MIT
#include "select/bench.hpp"

#include <fmt/core.h>

#include "measure/record.hpp"
#include "measure/record_csv.hpp"
#include "measure/time_kernels.hpp"
#include "problem/facts.hpp"
#include "problem/problem_text.hpp"
#include "select/tuning_decision.hpp"

namespace tilewise {
namespace {

// One kernel alone is worth more blocks than each of many.
ShortTimingOptions timing_of_one(const Device& device) {
    ShortTimingOptions options = usual_timing(device);
    options.blocks = 25;
    options.long_seconds = 1;
    return options;
}

Result<KernelList> kernels_of(Runtime& runtime, const Problem& problem, const Choice& choice, bool all) {
    if (!all) {
        auto plan = choose_plan(runtime, problem, choice);
        if (!plan) return plan.error();
        return KernelList{plan->kernel};
    }
    SelectOptions options = choice.options;
    options.strategy = Strategy::rules;
    auto selection = runtime.dispatcher->select(problem, options);
    if (!selection) return selection.error();
    KernelList kernels;
    for (const Candidate& candidate : selection->candidates) kernels.push_back(candidate.kernel);
    return kernels;
}

Note noise_note(double spread) {
    return {
        "noise", ErrorCode::check_failed,
        fmt::format("the times vary ({}): something else keeps the machine busy, or its clock changes; measure again",
                    spread_text(spread))};
}

}  // namespace

Result<BenchOutcome> bench_problem(Runtime& runtime, const Problem& problem, const Choice& choice, bool all) {
    auto kernels = kernels_of(runtime, problem, choice, all);
    if (!kernels) return kernels.error();
    MeasureOptions options;
    if (!all) options.timing = timing_of_one(*runtime.device);
    options.arena = choice.options.arena;
    options.progress = choice.options.progress;
    options.records = runtime.records.get();
    auto measured = measure_candidates(problem, *kernels, *runtime.device, *runtime.builder, options);
    if (!measured) return measured.error();
    BenchOutcome outcome;
    outcome.failed = std::move(measured->failed);
    outcome.notes = std::move(measured->notes);
    const double roof = roof_us(problem, runtime.device->arch(), runtime.device->max_threads());
    for (const Measured& one : measured->measured) {
        outcome.rows.push_back({one.kernel, one.us, one.spread, flops(problem) / one.us / 1e6,
                                bytes_moved(problem) / one.us / 1e3, roof / one.us,
                                predicted_time(problem, *one.kernel, *runtime.device), one.notes});
        if (one.spread > kMostSpread) outcome.rows.back().notes.push_back(noise_note(one.spread));
    }
    return outcome;
}

Json bench_row_to_json(const Problem& problem, const BenchRow& row) {
    return Json::object({{"problem", print_problem(problem)},
                         {"kernel", row.kernel->name},
                         {"us", row.us},
                         {"spread", row.spread},
                         {"tflops", row.tflops},
                         {"gbps", row.gbps},
                         {"roof", row.roof},
                         {"predicted_us", row.predicted_us ? Json(*row.predicted_us) : Json()},
                         {"notes", notes_to_json(row.notes)}});
}

std::string bench_csv_header() { return "device,problem,kernel,us,spread,tflops,gbps,roof,predicted_us"; }

std::string bench_row_to_csv(const Device& device, const Problem& problem, const BenchRow& row) {
    return fmt::format("{},{},{},{:.6g},{:.4f},{:.6g},{:.6g},{:.4f},{}", csv_cell(device.identity()),
                       csv_cell(print_problem(problem)), csv_cell(row.kernel->name), row.us, row.spread, row.tflops,
                       row.gbps, row.roof, row.predicted_us ? fmt::format("{:.6g}", *row.predicted_us) : "");
}

Json bench_failure_to_json(const Problem& problem, const Failed& failed) {
    return Json::object(
        {{"problem", print_problem(problem)}, {"kernel", failed.kernel->name}, {"reason", failed.reason}});
}

Json bench_to_json(const Device& device, Json::Array results, Json::Array failures, std::span<const Note> notes) {
    return Json::object({{"device", device.identity()},
                         {"results", Json(std::move(results))},
                         {"failures", Json(std::move(failures))},
                         {"notes", notes_to_json(notes)}});
}

}  // namespace tilewise
