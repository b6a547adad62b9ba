// SPDX-License-Identifier: MIT
// tilewise problems: the problem sets there are, or one of them, whole or in part, in its own type or another.
#include <fmt/core.h>

#include <map>

#include "base/text.hpp"
#include "cli/command.hpp"
#include "cli/problem_set.hpp"
#include "cli/terminal.hpp"
#include "problem/problem_text.hpp"

namespace tilewise::cli {
namespace {

std::map<std::string, std::size_t> families_of(const ProblemSet& set) {
    std::map<std::string, std::size_t> counts;
    for (const SetEntry& entry : set.entries) ++counts[entry.family];
    return counts;
}

Json facts_of(const ProblemSet& set) {
    Json::Object families;
    for (const auto& [family, count] : families_of(set)) families.push_back({family, count});
    return Json::object({{"name", set.name},
                         {"size", set.entries.size()},
                         {"hash", set.hash()},
                         {"families", Json(std::move(families))}});
}

Result<int> list_sets(const Context& context) {
    Table table({"set", "size", "hash", "families"});
    Json::Array sets;
    for (const std::string& name : problem_set_names()) {
        auto set = find_problem_set(name);
        if (!set) return set.error();
        sets.push_back(facts_of(*set));
        const auto families = families_of(*set);
        std::vector<std::string_view> names;
        names.reserve(families.size());
        for (const auto& [family, count] : families) names.push_back(family);
        table.add({name, fmt::format("{}", set->entries.size()), set->hash(), join(names, " ")});
    }
    print(context.json ? Json::object({{"count", sets.size()}, {"sets", Json(std::move(sets))}}).dump() : table.text());
    return 0;
}

Status keep_first(const Context& context, ProblemSet& set) {
    const auto given = context.arguments.value("first");
    if (!given) return {};
    const auto count = parse_integer(*given);
    if (!count || *count < 1 || *count > static_cast<std::int64_t>(set.entries.size())) {
        return usage_error(fmt::format("--first takes a whole number from 1 to {}, the size of {}, not '{}'",
                                       set.entries.size(), set.name, *given));
    }
    set.entries.resize(static_cast<std::size_t>(*count));
    return {};
}

Status change_dtype(const Context& context, ProblemSet& set) {
    const auto given = context.arguments.value("dtype");
    if (!given) return {};
    const auto dtype = parse_enum<DType>(*given);
    if (!dtype) return dtype.error();
    for (SetEntry& entry : set.entries) {
        auto problem = parse_problem(entry.problem);
        if (!problem) return problem.error();
        problem->dtype_a = problem->dtype_b = *dtype;
        problem->dtype_out = default_output(*dtype);
        if (const auto rejected = check_problem(*problem)) {
            return Error{ErrorCode::unsupported,
                         fmt::format("{} in {}: have {}; need {}", set.name, *given, rejected->have, rejected->need)};
        }
        entry.problem = print_problem(*problem);
    }
    return {};
}

std::string text_of(const ProblemSet& set) {
    std::string text = fmt::format("# {}: {} problems, hash {}", set.name, set.entries.size(), set.hash());
    for (const SetEntry& entry : set.entries) text += fmt::format("\n{}  # {}", entry.problem, entry.family);
    return text;
}

}  // namespace

Result<int> run_problems(Context& context) {
    if (context.arguments.operands().empty()) {
        for (const std::string_view option : {"first", "dtype"}) {
            if (context.arguments.has(option)) return usage_error(fmt::format("--{} needs the name of a set", option));
        }
        return list_sets(context);
    }
    auto set = find_problem_set(context.arguments.operands().front());
    if (!set) return set.error();
    if (auto status = keep_first(context, *set); !status) return status.error();
    if (auto status = change_dtype(context, *set); !status) return status.error();
    if (!context.json) return print(text_of(*set)), 0;
    Json facts = facts_of(*set);
    Json::Array problems;
    for (const SetEntry& entry : set->entries) {
        problems.push_back(Json::object({{"problem", entry.problem}, {"family", entry.family}}));
    }
    facts.set("problems", Json(std::move(problems)));
    return print(facts.dump()), 0;
}

}  // namespace tilewise::cli
