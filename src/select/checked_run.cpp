// SPDX-License-Identifier: MIT
#include "select/checked_run.hpp"

#include "measure/bound_run.hpp"
#include "measure/checked_operands.hpp"
#include "measure/record.hpp"
#include "problem/empty_problem.hpp"
#include "problem/facts.hpp"
#include "problem/problem_text.hpp"

namespace tilewise {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr float kAlpha = 1.0f;
constexpr float kBeta = 0.5f;  // not 1, so that a kernel that ignores its value is caught

// Chooses and builds; nothing is built for a plan that is not wanted.
Status choose_and_build(Runtime& runtime, const Problem& problem, Choice choice, bool strict, CheckedRun& out) {
    choice.options.as_given = strict;
    auto plan = choose_plan(runtime, problem, choice);
    if (!plan) return plan.error();
    out.plan = std::move(*plan);
    out.notes = out.plan.notes;
    if (auto status = strict ? forbid(out.notes) : Status(); !status) return status;
    auto executable = runtime.dispatcher->executable(problem, out.plan);
    if (!executable) return executable.error();
    out.executable = std::move(*executable);
    out.notes = joined(out.plan.notes, out.executable->notes());
    return strict ? forbid(out.notes) : Status();
}

// A single run is no measurement, but that a kernel computes something else is worth knowing.
void record_wrong_result(Runtime& runtime, const Problem& problem, CheckedRun& run) {
    Record record = record_of(problem, *run.plan.kernel, *runtime.device, run.executable->built().digest);
    record.status = RecordStatus::wrong;
    record.reason = describe(*run.report);
    record.samples = 1;
    record.max_error = run.report->max_error;
    set_time(record, problem, *runtime.device, run.us);
    if (const auto status = runtime.records->append({&record, 1}); !status) {
        run.notes.push_back({"records", status.error().code, status.error().message});
    }
}

Json report_to_json(const VerifyReport& report) {
    return Json::object({{"ok", report.ok},
                         {"max_error", report.max_error},
                         {"tolerance", report.tolerance},
                         {"method", name_of(report.method)},
                         {"checked", report.checked},
                         {"message", describe(report)}});
}

Json plan_to_json(const CheckedRun& run) {
    return Json::object({{"kernel", run.plan.kernel->name},
                         {"source", name_of(run.plan.source)},
                         {"why", run.plan.why},
                         {"origin", name_of(run.executable->built().origin)},
                         {"notes", notes_to_json(run.notes)},
                         {"threads", threads_json(*run.executable)},
                         {"workspace_bytes", run.executable->workspace_bytes()}});
}

}  // namespace

Result<CheckedRun> run_checked(Runtime& runtime, const Problem& problem, const Choice& choice,
                               const CheckedRunOptions& options) {
    CheckedRun run;
    if (auto status = choose_and_build(runtime, problem, choice, options.strict, run); !status) return status.error();
    if (has_empty_result(problem)) {
        if (options.validate) run.report = VerifyReport{}, run.report->ok = true;
        return run;
    }
    const float alpha = kAlpha * suggested_alpha(problem), beta = problem.beta ? kBeta : 0.0f;
    auto checked = make_checked_operands(*runtime.device, *runtime.builder, problem, kSeed);
    if (!checked) return checked.error();
    auto bound = BoundRun::make(run.executable, *runtime.device, {&(*checked)->operands(), 1}, alpha, beta);
    if (!bound) return bound.error();
    auto recording = runtime.device->record([&](Stream stream, std::int64_t) { return bound->run(0, stream); }, 1);
    if (!recording) return recording.error();
    auto seconds = (*recording)->replay();
    if (!seconds) return seconds.error();
    run.us = *seconds * 1e6;
    run.tflops = flops(problem) / run.us / 1e6;
    if (!options.validate) return run;
    VerifyOptions verifying;
    verifying.summation = summation_of(run.plan.kernel->config, runtime.device->arch());
    auto report = (*checked)->verify(alpha, beta, verifying);
    if (!report) return report.error();
    run.report = std::move(*report);
    if (!run.report->ok) record_wrong_result(runtime, problem, run);
    return run;
}

Json checked_run_to_json(const Problem& problem, const CheckedRun& run) {
    Json json = Json::object({{"problem", print_problem(problem)},
                              {"kernel", run.plan.kernel->name},
                              {"plan", plan_to_json(run)},
                              {"time_us", run.us},
                              {"tflops", run.tflops}});
    if (run.report) json.set("validation", report_to_json(*run.report));
    return json;
}

}  // namespace tilewise
