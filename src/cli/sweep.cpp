// SPDX-License-Identifier: MIT
// tilewise sweep: measures many kernels on many problems into a file of records, and the worker process that does the measuring.
#include "sweep/sweep.hpp"

#include <fmt/core.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <set>

#include "base/text.hpp"
#include "cli/command.hpp"
#include "cli/problem_set.hpp"
#include "cli/runtime.hpp"
#include "cli/terminal.hpp"
#include "device/cpu/thread_pool.hpp"
#include "problem/empty_problem.hpp"
#include "problem/problem_ranges.hpp"
#include "problem/problem_text.hpp"
#include "sweep/worker.hpp"

namespace tilewise::cli {
namespace {

// A list as the sweep takes it: each problem once, with the network that the list names behind it.
struct SweepList {
    ProblemSet set;
    std::vector<SweepProblem> problems;
};

Status add_line(std::string_view line, const std::string& place, std::set<std::string>& seen, SweepList& list) {
    const std::size_t mark = line.find('#');
    const std::string_view body = trim(line.substr(0, mark));
    if (body.empty()) return {};
    const std::string network(mark == std::string_view::npos ? "" : trim(line.substr(mark + 1)));
    const auto wrong = [&](const Error& error) { return Error{error.code, place + error.message}; };
    const auto texts = expand_ranges(body);
    if (!texts) return wrong(texts.error());
    for (const std::string& text : *texts) {
        auto problem = read_problem(text);
        if (!problem) return wrong(problem.error());
        if (is_empty(*problem)) {
            return wrong(unsupported_error(fmt::format("{} has an empty dimension: there is nothing to time", text)));
        }
        const std::string printed = print_problem(*problem);
        if (!seen.insert(printed).second) continue;
        list.set.entries.push_back({printed, network});
        list.problems.push_back({std::move(*problem), network});
    }
    return {};
}

Result<SweepList> read_list(const Context& context) {
    const auto given = context.arguments.values("problems");
    if (given.size() != 1) return usage_error("sweep needs --problems FILE|SET, one of them");
    const auto text = read_problem_list(given.front());
    if (!text) return text.error();
    SweepList list;
    list.set.name = std::filesystem::path(given.front()).stem();
    std::set<std::string> seen;
    int number = 0;
    for (const std::string_view line : split(*text, '\n')) {
        const std::string place = fmt::format("{}:{}: ", given.front(), ++number);
        if (auto status = add_line(line, place, seen, list); !status) return status.error();
    }
    if (list.problems.empty()) {
        return usage_error(fmt::format("{} has no problem: need at least one, a line each", given.front()));
    }
    return list;
}

// "90s", "25m", "2h"; without a letter, seconds.
Result<std::optional<std::chrono::milliseconds>> read_budget(const Context& context) {
    const auto given = context.arguments.value("budget");
    if (!given) return std::optional<std::chrono::milliseconds>();
    double number = 0;
    const char* const end = given->data() + given->size();
    const auto [stopped, error] = std::from_chars(given->data(), end, number);
    const std::string_view unit(stopped, static_cast<std::size_t>(end - stopped));
    const double seconds = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
    constexpr double kMostSeconds = 1e7;
    const double budget = number * seconds;
    if (error != std::errc() || !(budget > 0) || budget > kMostSeconds) {
        return usage_error(fmt::format("--budget takes a time above 0, such as 90s, 25m or 2h, not '{}'", *given));
    }
    return std::optional(std::chrono::milliseconds(static_cast<std::int64_t>(budget * 1e3) + 1));
}

Status check_out(const std::string& out) {
    std::error_code ignored;
    const std::filesystem::path folder = std::filesystem::path(out).parent_path();
    if (folder.empty() || std::filesystem::is_directory(folder, ignored)) return {};
    return usage_error(
        fmt::format("cannot write '{}': there is no folder '{}'; make it, or name another file", out, folder.string()));
}

// This program, as the worker on the same device.
std::vector<std::string> worker_command(const Context& context) {
    std::error_code ignored;
    std::vector<std::string> argv = {std::filesystem::read_symlink("/proc/self/exe", ignored), "sweep-worker"};
    for (const std::string_view option : {"device", "arch", "threads", "pack", "arch-file"}) {
        for (const std::string& value : context.arguments.values(option)) {
            argv.push_back(fmt::format("--{}", option));
            argv.push_back(value);
        }
    }
    return argv;
}

Result<PoolOptions> read_pool(const Context& context, std::vector<KernelConfig>& configs) {
    PoolOptions pool;
    const auto selecting = select_options(context);
    if (!selecting) return selecting.error();
    pool.rule_set = selecting->rule_set;
    const auto chosen = parse_enum<KernelPool>(context.arguments.value("kernels").value_or("all"));
    if (!chosen) return chosen.error();
    pool.pool = *chosen;
    const auto seed = read_number(context, "seed", 0, 0);
    if (!seed) return seed.error();
    pool.seed = static_cast<std::uint64_t>(*seed);
    const auto file = context.arguments.value("config");
    if (!file) return pool;
    for (const std::string_view other : {"rule-set", "kernels"}) {
        if (context.arguments.has(other)) {
            return usage_error(fmt::format("--config names the kernels; --{} chooses some: give one of them", other));
        }
    }
    auto read = read_sweep_configs(*file);
    if (!read) return read.error();
    configs = std::move(*read);
    pool.configs = &configs;
    return pool;
}

Result<SweepOptions> read_options(const Context& context, std::vector<KernelConfig>& configs) {
    SweepOptions options;
    const auto out = context.arguments.value("out");
    if (!out || out->empty()) return usage_error("sweep needs --out FILE.csv, where the records go");
    options.out = *out;
    if (auto status = check_out(*out); !status) return status.error();
    auto list = read_list(context);
    if (!list) return list.error();
    options.set = fmt::format("{}@{}", list->set.name, list->set.hash());
    options.problems = std::move(list->problems);
    const auto part = read_shard(context);
    if (!part) return part.error();
    options.shard = {static_cast<std::size_t>(part->index - 1), static_cast<std::size_t>(part->count)};
    auto pool = read_pool(context, configs);
    if (!pool) return pool.error();
    options.pool = *pool;
    const auto workers = read_number(context, "workers", usable_cpus(), 1);
    const auto timeout = read_number(context, "timeout", 60, 1);
    const auto budget = read_budget(context);
    for (const Status& status :
         {workers ? Status() : Status(workers.error()), timeout ? Status() : Status(timeout.error()),
          budget ? Status() : Status(budget.error())}) {
        if (!status) return status.error();
    }
    options.workers = static_cast<int>(*workers);
    options.timeout = std::chrono::seconds(*timeout);
    options.budget = *budget;
    options.packs = context.arguments.values("pack");
    options.resume = context.arguments.has("resume");
    options.worker = worker_command(context);
    return options;
}

std::string time_text(double seconds) {
    const auto whole = static_cast<std::int64_t>(seconds);
    if (whole < 60) return fmt::format("{} s", whole);
    return whole < 3600 ? fmt::format("{} min", whole / 60) : fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

// The bar, the rate, and how long the rest takes if it goes on like this.
void show(const SweepProgress& progress) {
    const auto done = static_cast<double>(progress.problems_done), all = static_cast<double>(progress.problems);
    const double rate = static_cast<double>(progress.records) / std::max(progress.seconds, 1e-3);
    const std::string left = done > 0 ? time_text(progress.seconds / done * (all - done)) + " left" : "";
    show_progress(progress.problems_done, progress.problems,
                  fmt::format("problems, {} records, {:.1f}/s, {}", progress.records, rate, left));
}

Json summary_to_json(const SweepSummary& summary, const SweepOptions& options) {
    Json::Object records;
    for (std::size_t i = 0; i < summary.records.size(); ++i) {
        records.push_back({std::string(EnumNames<RecordStatus>::names[i]), Json(summary.records[i])});
    }
    const auto number = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
    return Json::object({{"device", summary.device},
                         {"set", options.set},
                         {"out", options.out},
                         {"problems", summary.problems},
                         {"without_kernels", summary.without_kernels},
                         {"records", Json(std::move(records))},
                         {"kept", summary.kept},
                         {"left_out", summary.left_out},
                         {"seconds", summary.seconds},
                         {"reference_us", number(summary.reference_us)},
                         {"reference_drift", number(summary.reference_drift)}});
}

std::string summary_text(const SweepSummary& summary, const SweepOptions& options) {
    std::size_t all = 0;
    std::string statuses;
    for (std::size_t i = 0; i < summary.records.size(); ++i) {
        all += summary.records[i];
        if (summary.records[i] == 0) continue;
        statuses += fmt::format("{}{} {}", statuses.empty() ? ": " : ", ", summary.records[i],
                                EnumNames<RecordStatus>::names[i]);
    }
    std::string text =
        fmt::format("{}\n{} records{} of {} problems in {}, {:.1f}/s", summary.device, all, statuses, summary.problems,
                    time_text(summary.seconds), static_cast<double>(all) / std::max(summary.seconds, 1e-3));
    if (summary.kept > 0) text += fmt::format("; {} were there before", summary.kept);
    if (summary.without_kernels > 0) text += fmt::format("; no kernel may run {} problems", summary.without_kernels);
    if (summary.left_out > 0) {
        text += fmt::format("\nthe budget was over: {} measurements are left, for --resume", summary.left_out);
    }
    return text + fmt::format("\n{}", options.out);
}

}  // namespace

Result<int> run_sweep(Context& context) {
    std::vector<KernelConfig> configs;
    auto options = read_options(context, configs);
    if (!options) return options.error();
    options->progress = show;
    options->say = [](const std::string& text) { print_error(fmt::format("tilewise: note: {}", text)); };
    std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of the write
    const auto summary = tilewise::run_sweep(*options, context.archs);
    if (!summary) return summary.error();
    print(context.json ? summary_to_json(*summary, *options).dump() : summary_text(*summary, *options));
    return 0;
}

Result<int> run_sweep_worker(Context& context) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto runtime = open_runtime(context);
    const Status status =
        runtime ? serve_sweep(*runtime, context.archs, STDIN_FILENO, STDOUT_FILENO) : Status(runtime.error());
    if (status) return 0;
    if (!runtime) {
        const auto code = static_cast<int>(status.error().code);
        print(Json::object({{"failed", status.error().message}, {"code", code}}).dump());
    }
    return static_cast<int>(status.error().code);
}

}  // namespace tilewise::cli
