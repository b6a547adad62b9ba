// SPDX-License-Identifier: MIT
// tilewise tune: measures the model's best few kernels for each problem and remembers the winners.
#include <fmt/core.h>

#include "cli/command.hpp"
#include "cli/runtime.hpp"
#include "cli/terminal.hpp"
#include "problem/empty_problem.hpp"
#include "problem/problem_text.hpp"

namespace tilewise::cli {

Result<int> run_tune(Context& context) {
    auto problems = read_problems(context);
    if (!problems) return problems.error();
    auto runtime = open_runtime(context);
    if (!runtime) return runtime.error();
    auto options = select_options(context);
    if (!options) return options.error();
    for (const Problem& problem : *problems) {
        if (is_empty(problem)) {
            return unsupported_error(
                fmt::format("{} has an empty dimension: there is nothing to tune", print_problem(problem)));
        }
    }
    // Measuring for nothing would take minutes.
    if (auto status = runtime->tuning->check_writable(); !status) return status.error();
    options->strategy = Strategy::measure;
    OperandArena arena(*runtime->device);
    options->arena = &arena;
    bool lost = false;
    Json::Array results;
    Table table({"problem", "kernel", "why"});
    for (const Problem& problem : *problems) {
        options->progress = progress_of(results.size(), problems->size());
        auto plan = runtime->dispatcher->plan(problem, *options);
        if (!plan) return plan.error();
        for (const Note& note : (*plan)->notes) lost = lost || note.kind == "tuning";
        table.add({print_problem(problem), (*plan)->kernel->name, (*plan)->why});
        results.push_back(Json::object({{"problem", print_problem(problem)},
                                        {"kernel", (*plan)->kernel->name},
                                        {"why", (*plan)->why},
                                        {"notes", notes_to_json((*plan)->notes)}}));
        if (context.json) continue;
        for (const Note& note : (*plan)->notes) print_error(fmt::format("tilewise: note: {}", note.message));
    }
    print(context.json ? Json::object({{"device", runtime->device->identity()},
                                       {"database", runtime->tuning->path()},
                                       {"results", Json(std::move(results))}})
                             .dump()
                       : table.text());
    if (!lost) return 0;
    print_error(fmt::format("tilewise: some results are not kept in '{}'", runtime->tuning->path()));
    return static_cast<int>(ErrorCode::check_failed);
}

}  // namespace tilewise::cli
