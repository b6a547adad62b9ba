// SPDX-License-Identifier: MIT
// tilewise run: one problem, from the choice of a kernel to the checked result.
#include <fmt/core.h>

#include "cli/command.hpp"
#include "cli/runtime.hpp"
#include "cli/terminal.hpp"
#include "problem/problem_text.hpp"
#include "select/checked_run.hpp"

namespace tilewise::cli {
namespace {

void print_run(const Problem& problem, const CheckedRun& run) {
    print(
        fmt::format("{}\nkernel: {} ({})\nplan:   {}: {}\ntime:   {:.1f} us, {:.3f} TFLOPS (first run; tilewise bench "
                    "times it properly)",
                    print_problem(problem), run.plan.kernel->name, name_of(run.executable->built().origin),
                    name_of(run.plan.source), run.plan.why, run.us, run.tflops));
    if (!run.report) return;
    const bool ok = run.report->ok;
    print(
        fmt::format("{} {}", paint(ok ? "valid:" : "WRONG:", ok ? Colour::green : Colour::red), describe(*run.report)));
}

}  // namespace

Result<int> run_run(Context& context) {
    auto problem = read_problem(context.arguments.operands().front());
    if (!problem) return problem.error();
    auto runtime = open_runtime(context);
    if (!runtime) return runtime.error();
    const auto choice = read_choice(context);
    if (!choice) return choice.error();
    const auto run =
        run_checked(*runtime, *problem, *choice, {context.arguments.has("strict"), context.arguments.has("validate")});
    if (!run) return run.error();
    if (context.json) {
        print(checked_run_to_json(*problem, *run).dump());
    } else {
        print_run(*problem, *run);
        for (const Note& note : run->notes) print_error(fmt::format("tilewise: note: {}", note.message));
    }
    return run->report && !run->report->ok ? static_cast<int>(ErrorCode::check_failed) : 0;
}

}  // namespace tilewise::cli
