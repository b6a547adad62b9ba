// SPDX-License-Identifier: MIT
// tilewise run: one problem, from the choice of a kernel to the checked result.
#include <fmt/core.h>

#include "cli/command.hpp"
#include "cli/runtime.hpp"
#include "cli/terminal.hpp"
#include "measure/bound_run.hpp"
#include "measure/checked_operands.hpp"
#include "measure/verify.hpp"
#include "problem/facts.hpp"
#include "problem/problem_text.hpp"

namespace tilewise::cli {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr float kAlpha = 1.0f;
constexpr float kBeta = 0.5f;  // not 1, so that a kernel that ignores its value is caught

Json report_to_json(const VerifyReport& report) {
    return Json::object({{"ok", report.ok},
                         {"max_error", report.max_error},
                         {"tolerance", report.tolerance},
                         {"method", name_of(report.method)},
                         {"checked", report.checked},
                         {"message", describe(report)}});
}

Json plan_to_json(const Plan& plan, const Executable& executable, const std::vector<Note>& notes) {
    return Json::object({{"kernel", plan.kernel->name},
                         {"source", plan.source},
                         {"why", plan.why},
                         {"origin", name_of(executable.built().origin)},
                         {"notes", notes_to_json(notes)},
                         {"threads", executable.threads()},
                         {"workspace_bytes", executable.workspace_bytes()}});
}

struct Ready {
    Plan plan;
    std::shared_ptr<const Executable> executable;
    std::vector<Note> notes;  // of both
};

// Chooses and builds; with --strict only what leaves nothing to note, and nothing is built for a plan that does.
Result<Ready> get_ready(const Context& context, Runtime& runtime, const Problem& problem) {
    const bool strict = context.arguments.has("strict");
    const auto choice = read_choice(context);
    if (!choice) return choice.error();
    auto plan = choose_plan(runtime, problem, *choice);
    if (!plan) return plan.error();
    std::vector<Note> notes = plan->notes;
    if (auto status = strict ? forbid(notes) : Status(); !status) return status.error();
    auto executable = runtime.dispatcher->executable(problem, *plan);
    if (!executable) return executable.error();
    notes.insert(notes.end(), (*executable)->notes().begin(), (*executable)->notes().end());
    if (auto status = strict ? forbid(notes) : Status(); !status) return status.error();
    return Ready{std::move(*plan), std::move(*executable), std::move(notes)};
}

}  // namespace

Result<int> run_run(Context& context) {
    auto problem = read_problem(context.arguments.operands().front());
    if (!problem) return problem.error();
    auto runtime = open_runtime(context);
    if (!runtime) return runtime.error();
    auto ready = get_ready(context, *runtime, *problem);
    if (!ready) return ready.error();
    const auto& [plan, executable, notes] = *ready;
    const float alpha = kAlpha * suggested_alpha(*problem), beta = problem->beta ? kBeta : 0.0f;
    auto checked = make_checked_operands(*runtime->device, *runtime->builder, *problem, kSeed);
    if (!checked) return checked.error();
    auto bound = BoundRun::make(executable, *runtime->device, {&(*checked)->operands(), 1}, alpha, beta);
    if (!bound) return bound.error();
    auto recording = runtime->device->record([&](Stream stream, std::int64_t) { return bound->run(0, stream); }, 1);
    if (!recording) return recording.error();
    auto seconds = (*recording)->replay();
    if (!seconds) return seconds.error();
    const double us = *seconds * 1e6;
    const double tflops = flops(*problem) / us / 1e6;

    Json json = Json::object({{"problem", print_problem(*problem)},
                              {"kernel", plan.kernel->name},
                              {"plan", plan_to_json(plan, *executable, notes)},
                              {"time_us", us},
                              {"tflops", tflops}});
    int code = 0;
    std::string verdict;
    if (context.arguments.has("validate")) {
        VerifyOptions options;
        options.split_k = plan.kernel->config.split_k;
        const auto report = (*checked)->verify(alpha, beta, options);
        if (!report) return report.error();
        json.set("validation", report_to_json(*report));
        code = report->ok ? 0 : static_cast<int>(ErrorCode::check_failed);
        verdict =
            fmt::format("\n{} {}", paint(report->ok ? "valid:" : "WRONG:", report->ok ? Colour::green : Colour::red),
                        describe(*report));
    }
    if (context.json) return print(json.dump()), code;
    print(
        fmt::format("{}\nkernel: {} ({})\nplan:   {}: {}\ntime:   {:.1f} us, {:.3f} TFLOPS (first run; tilewise bench "
                    "times it properly){}",
                    print_problem(*problem), plan.kernel->name, name_of(executable->built().origin), plan.source,
                    plan.why, us, tflops, verdict));
    for (const Note& note : notes) print_error(fmt::format("tilewise: note: {}", note.message));
    return code;
}

}  // namespace tilewise::cli
