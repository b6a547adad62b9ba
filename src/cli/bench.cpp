// SPDX-License-Identifier: MIT
// tilewise bench: times kernels on problems and shows the times, beside what was predicted, the rates and parts of the roof. A problem
// that is impossible, or that no kernel may run, gets a message and is passed over.
#include "select/bench.hpp"

#include <fmt/core.h>

#include <optional>

#include "cli/bench_peer.hpp"
#include "cli/command.hpp"
#include "cli/runtime.hpp"
#include "cli/terminal.hpp"
#include "measure/record_csv.hpp"
#include "problem/facts.hpp"
#include "problem/problem_text.hpp"

namespace tilewise::cli {
namespace {

// Everything that was found out, in the forms it may be wanted in.
struct Shown {
    Json::Array results, failures, peers;
    std::string csv = bench_csv_header();
    Table table{{"us", "predicted", "spread %", "GFLOPS", "GB/s", "% of roof", "kernel", "problem"}};
    std::vector<Note> notes;
    std::vector<std::string> refused;  // why problems were passed over
    std::optional<Error> first_failure;
};

void note(const Note& note) { print_error(fmt::format("tilewise: note: {}", note.message)); }

void show_rows(const Device& device, const Problem& problem, const BenchOutcome& outcome, Shown& shown) {
    for (const BenchRow& row : outcome.rows) {
        shown.results.push_back(bench_row_to_json(problem, row));
        shown.csv += '\n' + bench_row_to_csv(device, problem, row);
        shown.table.add({fmt::format("{:.2f}", row.us),
                         row.predicted_us ? fmt::format("{:.2f}", *row.predicted_us) : "-",
                         fmt::format("{:.1f}", row.spread * 100), fmt::format("{:.1f}", row.tflops * 1e3),
                         fmt::format("{:.1f}", row.gbps), fmt::format("{:.1f}", 100 * row.roof), row.kernel->name,
                         print_problem(problem)});
        for (const Note& one : row.notes) note(one);
    }
    shown.notes = joined(shown.notes, outcome.notes);
    for (const Failed& failed : outcome.failed) {
        shown.failures.push_back(bench_failure_to_json(problem, failed));
        print_error(fmt::format("tilewise: {}: {}", failed.kernel->name, failed.reason));
        if (!shown.first_failure) shown.first_failure = Error{ErrorCode::check_failed, failed.reason};
    }
}

// The same product by other libraries, as rows of their own. A library that has no such product gets a message and is passed over.
void show_peers(const Peers& peers, const Problem& problem, const Device& device, Shown& shown) {
    for (const auto& peer : peers) {
        const auto timed = time_peer(*peer, problem, device);
        if (!timed) {
            shown.refused.push_back(fmt::format("{}: {}", peer->name(), timed.error().message));
            continue;
        }
        const double us = timed->seconds * 1e6, gflops = flops(problem) / us / 1e3;
        shown.peers.push_back(Json::object({{"problem", print_problem(problem)},
                                            {"peer", peer->name()},
                                            {"us", us},
                                            {"spread", timed->spread},
                                            {"tflops", gflops / 1e3}}));
        shown.csv += fmt::format("\n,{},{},{:.6g},{:.4f},{:.6g},,,", csv_cell(print_problem(problem)),
                                 csv_cell(peer->name()), us, timed->spread, gflops / 1e3);
        shown.table.add({fmt::format("{:.2f}", us), "-", fmt::format("{:.1f}", timed->spread * 100),
                         fmt::format("{:.1f}", gflops), "-", "-", peer->name(), print_problem(problem)});
    }
}

// A fault of the problem alone does not end the command.
Status bench_one(Runtime& runtime, const GivenProblem& given, const Choice& choice, bool all, Shown& shown) {
    const auto outcome = given.problem ? bench_problem(runtime, *given.problem, choice, all)
                                       : Result<BenchOutcome>(given.problem.error());
    if (outcome) return show_rows(*runtime.device, *given.problem, *outcome, shown), Status();
    if (outcome.error().code != ErrorCode::unsupported) return outcome.error();
    shown.failures.push_back(
        Json::object({{"problem", given.text}, {"kernel", Json()}, {"reason", outcome.error().message}}));
    shown.refused.push_back(outcome.error().message);
    if (!shown.first_failure) shown.first_failure = outcome.error();
    return {};
}

}  // namespace

Result<int> run_bench(Context& context) {
    for (const std::string_view other : {"strategy", "kernel"}) {
        if (context.arguments.has("all") && context.arguments.has(other)) {
            return usage_error(fmt::format("--all times every kernel; --{} chooses one: give one of them", other));
        }
    }
    const bool csv = context.arguments.has("csv");
    if (csv && context.json) return usage_error("--csv and --json: give one of them");
    auto given = read_given_problems(context);
    if (!given) return given.error();
    auto runtime = open_runtime(context);
    if (!runtime) return runtime.error();
    auto choice = read_choice(context);
    if (!choice) return choice.error();
    const auto peers = load_peers(context, *runtime->device);
    if (!peers) return peers.error();
    OperandArena arena(*runtime->device);
    choice->options.arena = &arena;
    Shown shown;
    for (const GivenProblem& one : *given) {
        choice->options.progress = progress_of(static_cast<std::size_t>(&one - given->data()), given->size());
        if (auto status = bench_one(*runtime, one, *choice, context.arguments.has("all"), shown); !status) {
            return status.error();
        }
        if (one.problem) show_peers(*peers, *one.problem, *runtime->device, shown);
    }
    if (shown.results.empty() && shown.first_failure && shown.first_failure->code == ErrorCode::unsupported) {
        return *shown.first_failure;
    }
    for (const std::string& why : shown.refused) print_error(fmt::format("tilewise: {}", why));
    for (const Note& one : shown.notes) note(one);
    if (context.json) {
        Json json = bench_to_json(*runtime->device, std::move(shown.results), std::move(shown.failures), shown.notes);
        if (!peers->empty()) json.set("peers", Json(std::move(shown.peers)));
        print(json.dump());
    } else {
        print(csv ? shown.csv : fmt::format("{}\n{}", runtime->device->identity(), shown.table.text()));
    }
    return shown.first_failure ? static_cast<int>(shown.first_failure->code) : 0;
}

}  // namespace tilewise::cli
