// SPDX-License-Identifier: MIT
// tilewise bench: times kernels on problems and shows the times, rates and parts of the roof.
#include "select/bench.hpp"

#include <fmt/core.h>

#include "cli/command.hpp"
#include "cli/runtime.hpp"
#include "cli/terminal.hpp"
#include "problem/problem_text.hpp"

namespace tilewise::cli {

Result<int> run_bench(Context& context) {
    for (const std::string_view other : {"strategy", "kernel"}) {
        if (context.arguments.has("all") && context.arguments.has(other)) {
            return usage_error(fmt::format("--all times every kernel; --{} chooses one: give one of them", other));
        }
    }
    auto problems = read_problems(context);
    if (!problems) return problems.error();
    auto runtime = open_runtime(context);
    if (!runtime) return runtime.error();
    auto choice = read_choice(context);
    if (!choice) return choice.error();
    Json::Array results, failures;
    std::vector<Note> notes;
    Table table({"us", "spread %", "GFLOPS", "GB/s", "% of roof", "kernel", "problem"});
    for (const Problem& problem : *problems) {
        choice->options.progress = progress_of(static_cast<std::size_t>(&problem - problems->data()), problems->size());
        auto outcome = bench_problem(*runtime, problem, *choice, context.arguments.has("all"));
        if (!outcome) return outcome.error();
        for (const BenchRow& row : outcome->rows) {
            results.push_back(bench_row_to_json(problem, row));
            table.add({fmt::format("{:.2f}", row.us), fmt::format("{:.1f}", row.spread * 100),
                       fmt::format("{:.1f}", row.tflops * 1e3), fmt::format("{:.1f}", row.gbps),
                       fmt::format("{:.1f}", 100 * row.roof), row.kernel->name, print_problem(problem)});
            for (const Note& note : row.notes) print_error(fmt::format("tilewise: note: {}", note.message));
        }
        notes = joined(notes, outcome->notes);
        for (const Failed& failed : outcome->failed) {
            failures.push_back(bench_failure_to_json(problem, failed));
            print_error(fmt::format("tilewise: {}: {}", failed.kernel->name, failed.reason));
        }
    }
    for (const Note& note : notes) print_error(fmt::format("tilewise: note: {}", note.message));
    const bool failed = !failures.empty();
    if (context.json) {
        print(bench_to_json(*runtime->device, std::move(results), std::move(failures), notes).dump());
    } else {
        print(fmt::format("{}\n{}", runtime->device->identity(), table.text()));
    }
    return failed ? static_cast<int>(ErrorCode::check_failed) : 0;
}

}  // namespace tilewise::cli
