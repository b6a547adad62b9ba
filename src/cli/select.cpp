// SPDX-License-Identifier: MIT
// tilewise select: which kernels may run a problem on a target, which is chosen, and why the others may not.
#include "select/select.hpp"

#include <fmt/format.h>

#include <map>

#include "base/text.hpp"
#include "cli/command.hpp"
#include "cli/terminal.hpp"
#include "problem/facts.hpp"
#include "problem/problem_text.hpp"
#include "registry/rule_set_registry.hpp"

namespace tilewise::cli {
namespace {

constexpr std::int64_t kDefaultTop = 10;

void print_problem_facts(const Problem& problem) {
    const GemmView view = gemm_view(problem);
    print(fmt::format("{}\n{} x {} x {} x {}, {:.3f} GFLOP, {:.3f} MB, {:.1f} FLOP/byte", print_problem(problem),
                      view.batch, view.m, view.n, view.k, flops(problem) / 1e9, bytes_moved(problem) / 1e6,
                      arithmetic_intensity(problem)));
}

void print_rejections(const Selection& selection, bool explain) {
    const auto& rejected = selection.candidates.rejected;
    if (explain) {
        Table table({"rule", "have", "need", "kernel"});
        for (const auto& [kernel, why] : rejected) table.add({why.rule, why.have, why.need, kernel->name});
        print(fmt::format("\n{}\n{}", paint("rejected", Colour::bold), table.text()));
        return;
    }
    std::map<std::string, int> counts;
    for (const auto& entry : rejected) ++counts[entry.why.rule];
    std::string text;
    for (const auto& [rule, count] : counts) text += fmt::format("{}{} by {}", text.empty() ? "" : ", ", count, rule);
    if (!text.empty()) print(paint(fmt::format("rejected: {} (--explain says more)", text), Colour::dim));
}

Error no_kernel(const Problem& problem, const Selection& selection, const ArchSpec& arch) {
    std::string why = "the rule set has no kernel for this operation and these types";
    if (!selection.candidates.rejected.empty()) {
        const auto& [kernel, rejected] = selection.candidates.rejected.front();
        why = fmt::format("the first of {} is refused by {} (have {}; need {}); --explain lists all",
                          selection.candidates.rejected.size(), rejected.rule, rejected.have, rejected.need);
    }
    return unsupported_error(fmt::format("no kernel for {} may run {}: {}", arch.name, print_problem(problem), why));
}

}  // namespace

Result<int> run_select(Context& context) {
    const Arguments& arguments = context.arguments;
    auto problem = parse_problem(arguments.operands().front());
    if (!problem) return problem.error();
    auto arch = chosen_arch(context);
    if (!arch) return arch.error();
    const auto set = parse_enum<RuleSet>(arguments.value("rule-set").value_or("default"));
    if (!set) return set.error();
    const auto top = parse_integer(arguments.value("top").value_or(std::to_string(kDefaultTop)));
    if (!top || *top < 0) return usage_error("--top takes a whole number, 0 or more");

    auto kernels = list_kernels(query_for(*problem, **arch, *set));
    if (!kernels) return kernels.error();
    Registry registry;
    registry.add(std::move(*kernels));
    const Selection selection = select_kernel(*problem, registry, **arch);
    const bool explain = arguments.has("explain");
    const int code = selection.plan ? 0 : static_cast<int>(ErrorCode::unsupported);
    if (context.json) {
        print(selection_to_json(selection, explain).dump());
        if (!selection.plan) print_error("tilewise: " + no_kernel(*problem, selection, **arch).message);
        return code;
    }
    print_problem_facts(*problem);
    if (!selection.plan) {
        if (explain) print_rejections(selection, explain);
        return no_kernel(*problem, selection, **arch);
    }
    print(fmt::format("\n{} {}\nsource: {}: {}", paint("plan:", Colour::green), selection.plan->kernel->name,
                      selection.plan->source, selection.plan->why));
    Table table({"", "id", "available", "candidate"});
    std::int64_t shown = 0;
    for (const KernelPtr& kernel : selection.candidates.accepted) {
        if (shown++ == *top) break;
        table.add({fmt::format("{}", shown), kernel->id, kernel->available ? "yes" : "no", kernel->name});
    }
    if (shown > 0 && *top > 0) print(fmt::format("\n{}", table.text()));
    print_rejections(selection, explain);
    return 0;
}

}  // namespace tilewise::cli
