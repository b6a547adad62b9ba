// SPDX-License-Identifier: MIT
// The C functions that run problems on tensors of their own: timing and validating.
#include "capi/call.hpp"
#include "capi/handles.hpp"
#include "select/bench.hpp"
#include "select/checked_run.hpp"

namespace tilewise::capi {
namespace {

Result<std::string> bench(Runtime& runtime, const char* text, const tilewise_select_options* given, bool all) {
    const auto problem = read_problem_argument(text);
    if (!problem) return problem.error();
    const auto read = read_choice(given);
    if (!read) return read.error();
    const auto outcome = bench_problem(runtime, *problem, read->choice, all);
    if (!outcome) return outcome.error();
    Json::Array results, failures;
    for (const BenchRow& row : outcome->rows) results.push_back(bench_row_to_json(*problem, row));
    for (const Failed& failed : outcome->failed) failures.push_back(bench_failure_to_json(*problem, failed));
    return bench_to_json(*runtime.device, std::move(results), std::move(failures), outcome->notes).dump();
}

Result<std::string> validate(Runtime& runtime, const char* text, const tilewise_select_options* given) {
    const auto problem = read_problem_argument(text);
    if (!problem) return problem.error();
    const auto read = read_choice(given);
    if (!read) return read.error();
    CheckedRunOptions options;
    options.validate = true;
    const auto run = run_checked(runtime, *problem, read->choice, options);
    if (!run) return run.error();
    return checked_run_to_json(*problem, *run).dump();
}

}  // namespace
}  // namespace tilewise::capi

extern "C" {

tilewise_status tilewise_bench(tilewise_context* context, const char* problem, const tilewise_select_options* options,
                               int all, char** json) {
    return tilewise::capi::give_text_of(context, json, [&](tilewise_context& c) {
        return tilewise::capi::bench(*c.runtime, problem, options, all != 0);
    });
}

tilewise_status tilewise_validate(tilewise_context* context, const char* problem,
                                  const tilewise_select_options* options, char** json) {
    return tilewise::capi::give_text_of(
        context, json, [&](tilewise_context& c) { return tilewise::capi::validate(*c.runtime, problem, options); });
}

}  // extern "C"
