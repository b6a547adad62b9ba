// SPDX-License-Identifier: MIT
#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "build/code_suffix.hpp"
#include "cli/build_work.hpp"
#include "cli/runtime.hpp"
#include "config/arch_spec.hpp"
#include "device/cpu/thread_pool.hpp"
#include "problem/problem_text.hpp"
#include "select/needed_code.hpp"

namespace tilewise::cli {
namespace {

// The records of these problems for kernels of the arch, in one order.
std::vector<TuningRecord> records_for(std::span<const Problem> problems, const ArchSpec& arch,
                                      std::span<const TuningRecord> tuned) {
    std::set<std::string> texts;
    for (const Problem& problem : problems) texts.insert(print_problem(problem));
    std::vector<TuningRecord> records;
    for (const TuningRecord& record : tuned) {
        if (record.kernel.ends_with("@" + arch.name) && texts.contains(record.problem)) records.push_back(record);
    }
    std::sort(records.begin(), records.end(), [](const TuningRecord& a, const TuningRecord& b) {
        return std::tie(a.device, a.problem) < std::tie(b.device, b.problem);
    });
    return records;
}

Result<std::vector<NeededKernel>> choose_kernels(const Context& context, const ArchSpec& arch,
                                                 std::span<const Problem> problems,
                                                 std::span<const TuningRecord> tuned) {
    const auto options = select_options(context);
    if (!options) return options.error();
    const auto threads = threads_option(context);
    if (!threads) return threads.error();
    const auto top = read_number(context, "top", 1, 1);
    const auto seed = read_number(context, "seed", 0, 0);
    if (!top || !seed) return top ? seed.error() : top.error();
    NeedOptions need;
    need.rule_set = options->rule_set;
    need.threads = *threads > 0 ? *threads : usable_cpus();
    need.top = static_cast<std::size_t>(*top);
    need.seed = static_cast<std::uint64_t>(*seed);
    need.tuned = tuned;
    if (const auto pool = context.arguments.value("kernels")) {
        const auto known = parse_enum<KernelPool>(*pool);
        if (!known) return known.error();
        need.pool = *known;
    }
    auto needed = needed_kernels(problems, arch, need);
    if (!needed) return needed.error();
    const auto most = read_number(context, "most", static_cast<std::int64_t>(needed->size()), 1);
    if (!most) return most.error();
    needed->resize(std::min(needed->size(), static_cast<std::size_t>(*most)));
    return needed;
}

}  // namespace

Status add_problems(const Context& context, const ArchSpec& arch, std::span<const Problem> problems,
                    std::span<const TuningRecord> tuned, BuildWork& work) {
    const auto records = records_for(problems, arch, tuned);
    const auto needed = choose_kernels(context, arch, problems, records);
    if (!needed) return needed.error();
    work.kernels += needed->size();
    work.problems += problems.size();
    auto suffixes = code_suffixes(arch);
    // Only a pack goes to machines that nobody has seen yet.
    if (!context.arguments.value("pack")) suffixes.resize(1);
    std::set<std::string> seen;
    for (const NeededKernel& one : *needed) {
        for (const std::string_view suffix : suffixes) {
            auto requests = launch_requests(problems[one.problem], one.kernel->config, arch, suffix);
            if (!requests) return requests.error();
            for (BuildRequest& request : *requests) {
                if (!seen.insert(fmt::format("{} {}", suffix, request.source)).second) continue;
                work.portable += suffix == code_of(arch.backend).portable ? 1U : 0U;
                work.requests.push_back(std::move(request));
            }
        }
    }
    for (const TuningRecord& record : records) work.tuning += tuning_line(record) + "\n";
    return {};
}

}  // namespace tilewise::cli
