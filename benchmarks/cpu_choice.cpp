// SPDX-License-Identifier: MIT
// cpu_choice: how good the analytic model's choice among all kernels is. Times every candidate for each convolution of a file
// on one thread of this CPU, in alternating blocks, and says which share of the fastest one's speed the model's first choice
// and the best of its first eight reach. The table of all times (--table) is what the model's constants are fitted to.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

#include "base/statistics.hpp"
#include "benchmarks/program.hpp"
#include "problem/problem_text.hpp"

namespace tilewise::bench {
namespace {

constexpr const char* kUsage =
    "cpu_choice --problems FILE [--table FILE] [--quick] [--seconds S] [--only TEXT]...\n"
    "  --problems FILE   the shapes, a problem a line\n"
    "  --table FILE      also write problem, kernel, predicted and measured microseconds there, separated by tabs\n"
    "  --quick           the smallest shapes of each family\n"
    "  --seconds S       of timing, for each kernel on each problem (0.12)\n"
    "  --only TEXT       cases whose 'direction type form family dimensions origin' contains the text; given several\n"
    "                    times, all of the texts\n";

constexpr std::size_t kMeasured = 8;  // how many of the model's best the strategy `measure` times

struct Entry {
    std::string kernel;
    double predicted_us = 0, us = 0;
};

// In the model's order. Kernels whose result differs from that of the first are an error, not a choice.
Result<std::vector<Entry>> time_all(const Problem& problem, Dispatcher& dispatcher, double seconds) {
    auto tensors = Tensors::make(problem, 1);
    if (!tensors) return tensors.error();
    SelectOptions by_model;
    by_model.strategy = Strategy::rules;
    auto selection = dispatcher.select(problem, by_model);
    if (!selection) return selection.error();
    const Operands operands = operands_of(*tensors);
    std::vector<Entry> entries;
    std::vector<BoundRun> runs;
    std::vector<double> expected;
    for (const Candidate& candidate : selection->candidates) {
        auto executable = Executable::prepare(problem, *candidate.kernel, dispatcher.device(), dispatcher.builder());
        if (!executable) return executable.error();
        auto run = BoundRun::make(std::make_shared<const Executable>(std::move(*executable)), dispatcher.device(),
                                  {&operands, 1}, 1.0f, 0.0f);
        if (!run) return run.error();
        tensors->reset_output();
        if (auto status = run->run(); !status) return status.error();
        const std::vector<double> found = output_of(*tensors);
        if (expected.empty()) expected = found;
        if (auto status = check_same(expected, found, problem.dtype_out); !status) {
            return Error{ErrorCode::check_failed, fmt::format("{}: the result of {} {}", print_problem(problem),
                                                              candidate.kernel->name, status.error().message)};
        }
        runs.push_back(std::move(*run));
        entries.push_back({candidate.kernel->name, candidate.predicted_us.value_or(0), 0});
    }
    std::vector<TimedCall> calls;
    for (const BoundRun& run : runs) calls.push_back([&run](int) { (void)run.run(); });
    const std::vector<double> us = fastest_us(calls, seconds);
    for (std::size_t i = 0; i < us.size(); ++i) entries[i].us = us[i];
    return entries;
}

double least_us(const std::vector<Entry>& entries, std::size_t count) {
    double least = entries.front().us;
    for (std::size_t i = 1; i < std::min(count, entries.size()); ++i) least = std::min(least, entries[i].us);
    return least;
}

struct Shares {
    std::vector<double> first, eight;
};

std::string summary_of(const std::map<std::string, Shares>& groups) {
    std::string text =
        "| direction, type, weights, family | cases | first choice | worst | first eight | worst |\n"
        "|---|---:|---:|---:|---:|---:|\n";
    for (const auto& [title, shares] : groups) {
        const auto worst = [](const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); };
        text += fmt::format("| {} | {} | {:.3f} | {:.3f} | {:.3f} | {:.3f} |\n", title, shares.first.size(),
                            geomean(shares.first), worst(shares.first), geomean(shares.eight), worst(shares.eight));
    }
    return text;
}

Status run(const Options& options) {
    if (options.problems.empty()) return usage_error(fmt::format("--problems is missing\n{}", kUsage));
    auto cases = make_conv_cases(options.problems, options.quick);
    if (!cases) return cases.error();
    std::ofstream table(options.table);
    if (!options.table.empty() && !table) return usage_error(fmt::format("cannot write {}", options.table));
    return with_dispatcher([&](Dispatcher& dispatcher) -> Status {
        std::map<std::string, Shares> groups;
        for (const Case& of : *cases) {
            if (!is_wanted(of, options) || of.packed != of.problem.packed_b) continue;
            auto entries = time_all(of.problem, dispatcher, options.compare.seconds);
            if (!entries) return entries.error();
            const double best = least_us(*entries, entries->size());
            const double first = best / entries->front().us, eight = best / least_us(*entries, kMeasured);
            for (const Entry& entry : *entries) {
                table << fmt::format("{}\t{}\t{:.3f}\t{:.3f}\n", print_problem(of.problem), entry.kernel,
                                     entry.predicted_us, entry.us);
            }
            table.flush();
            const auto fastest =
                std::find_if(entries->begin(), entries->end(), [&](const Entry& entry) { return entry.us == best; });
            show(
                fmt::format("{:5.3f} {:5.3f} {:10.1f} us  {}\n    of {:3}: {:10.1f} us, predicted {:10.1f}, {}\n"
                            "    fastest of all: predicted {:10.1f}, number {}, {}\n",
                            first, eight, best, print_problem(of.problem), entries->size(), entries->front().us,
                            entries->front().predicted_us, entries->front().kernel, fastest->predicted_us,
                            fastest - entries->begin() + 1, fastest->kernel));
            std::string kind;
            for (const std::string& word : kind_of(of)) kind += word + " ";
            for (const std::string& title : {kind + of.family, std::string("all")}) {
                groups[title].first.push_back(first);
                groups[title].eight.push_back(eight);
            }
        }
        show(fmt::format("\n{}", summary_of(groups)));
        return {};
    });
}

int main_of(int count, char** arguments) {
    stay_on_one_cpu();
    auto options = parse_options(count, arguments, kUsage);
    const Status status = options ? run(*options) : Status(options.error());
    if (status) return 0;
    std::fprintf(stderr, "cpu_choice: %s\n", status.error().message.c_str());
    return static_cast<int>(status.error().code);
}

}  // namespace
}  // namespace tilewise::bench

int main(int count, char** arguments) { return tilewise::bench::main_of(count, arguments); }
