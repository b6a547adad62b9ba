// SPDX-License-Identifier: MIT
// tilewise select: which kernels may run a problem on a target, which is chosen, and why the others may not.
#include "select/select.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "cli/command.hpp"
#include "cli/runtime.hpp"
#include "cli/terminal.hpp"
#include "family/family.hpp"
#include "family/may_run.hpp"
#include "family/padded_problem.hpp"
#include "family/work_text.hpp"
#include "problem/empty_problem.hpp"
#include "problem/facts.hpp"
#include "problem/problem_text.hpp"
#include "registry/rule_set_registry.hpp"

namespace tilewise::cli {
namespace {

constexpr std::int64_t kDefaultTop = 10;
constexpr double kPercent = 100;

void print_problem_facts(const Problem& problem) {
    const GemmView view = gemm_view(problem);
    print(fmt::format("{}\n{} x {} x {} x {}, {:.3f} GFLOP, {:.3f} MB, {:.1f} FLOP/byte", print_problem(problem),
                      view.batch, view.m, view.n, view.k, flops(problem) / 1e9, bytes_moved(problem) / 1e6,
                      arithmetic_intensity(problem)));
}

void print_rejections(const Selection& selection, bool explain) {
    if (selection.rejected.empty()) return;
    if (!explain) {
        print(paint(fmt::format("rejected: {} (--explain says more)", counts_by_rule(selection)), Colour::dim));
        return;
    }
    Table table({"rule", "have", "need", "rejected kernel"});
    for (const auto& [kernel, why] : selection.rejected) table.add({why.rule, why.have, why.need, kernel->name});
    print(fmt::format("\n{}", table.text()));
    const auto about_sizes = [](const RejectedKernel& entry) { return is_about_sizes(entry.why.rule); };
    if (std::any_of(selection.rejected.begin(), selection.rejected.end(), about_sizes)) {
        print(
            "Sizes and alignment alone are no end: where nothing else is wrong, tilewise run --kernel NAME pads the "
            "problem for the kernel and says so. Padding costs, so a kernel that needs it is chosen only where none "
            "fits.");
    }
}

// Lists what the time of the chosen kernel is made of; empty for a padded problem, which is launched as another one.
tilewise::Work chosen_work(const Problem& problem, const Selection& selection, const ArchSpec& arch, int threads) {
    if (!selection.plan || !selection.plan->notes.empty()) return {};
    return work_of(WorkProblem(is_empty(problem) ? stand_in(problem) : problem, arch, threads),
                   selection.plan->kernel->config);
}

void print_work(const tilewise::Work& work, const ArchSpec& arch) {
    Table table({"part", "value", "of"});
    for (const WorkLine& line : work_lines(work, arch)) {
        table.add(
            {fmt::format("{:{}}{}", "", 2 * line.depth, line.name), fmt::format("{:.4g}", line.value), line.formula});
    }
    print(fmt::format("\nwork: what the predicted time, in us, is made of, with the prices of {}\n{}", arch.chip,
                      table.text()));
}

void print_learned(const LearnedChoice& choice) {
    const auto percent = [](double share) { return fmt::format("{:.1f} %", kPercent * share); };
    Table table({"learned model", choice.model});
    table.add({"confidence", fmt::format("{}: no slower than the next", percent(choice.confidence))});
    table.add({"correction", fmt::format("{:+.1f} %, of the analytic {:.2f} us",
                                         kPercent * std::expm1(choice.estimate.correction), choice.analytic_us)});
    table.add({"usual error",
               choice.estimate.error ? percent(*choice.estimate.error) : "a kind that the model has not seen"});
    table.add({"counts", fmt::format("{} of the correction", percent(choice.weight))});
    for (const auto& [name, correction] : choice.effects) {
        table.add({fmt::format("  by {}", name), fmt::format("{:+.1f} %", kPercent * std::expm1(correction))});
    }
    print(fmt::format("\n{}", table.text()));
}

void print_candidates(const Selection& selection, std::int64_t top) {
    Table table({"", "id", "available", "predicted us", "candidate"});
    std::int64_t shown = 0;
    for (const Candidate& candidate : selection.candidates) {
        if (shown++ == top) break;
        const Kernel& kernel = *candidate.kernel;
        table.add({fmt::format("{}", shown), kernel.id, kernel.available ? "yes" : "no",
                   candidate.predicted_us ? fmt::format("{:.1f}", *candidate.predicted_us) : "-", kernel.name});
    }
    print(fmt::format("\n{}", table.text()));
}

// The selection's JSON with the work as a member of its plan.
Json with_work(const Json& selection, const Json& work) {
    Json::Object members;
    for (const auto& [key, value] : *selection.object()) {
        Json copy = value;
        if (key == "plan" && copy.object()) copy.set("work", work);
        members.push_back({key, std::move(copy)});
    }
    return members;
}

Error no_kernel(const Problem& problem, const Selection& selection, const ArchSpec& arch) {
    return unsupported_error(
        fmt::format("no kernel for {} may run {}: {}", arch.name, print_problem(problem), why_none(selection)));
}

}  // namespace

Result<int> run_select(Context& context) {
    const Arguments& arguments = context.arguments;
    auto problem = read_problem(arguments.operands().front());
    if (!problem) return problem.error();
    auto arch = chosen_arch(context);
    if (!arch) return arch.error();
    const auto set = parse_enum<RuleSet>(arguments.value("rule-set").value_or("default"));
    if (!set) return set.error();
    const auto top = read_number(context, "top", kDefaultTop, 0);
    if (!top) return top.error();

    const auto threads = chosen_threads(context);
    if (!threads) return threads.error();

    auto kernels = list_kernels(query_for(*problem, **arch, *set));
    if (!kernels) return kernels.error();
    Registry registry;
    registry.add(std::move(*kernels));
    const int thread_count = *threads;
    const auto options = select_options(context);
    if (!options) return options.error();
    if (options->strategy == Strategy::measure)
        return usage_error("--strategy measure needs a device: tilewise tune measures");
    auto models = given_models(context);
    if (!models) return models.error();
    const auto selected = select_by(*options, **models, *problem, registry, **arch, thread_count);
    if (!selected) return selected.error();
    const Selection& selection = *selected;
    const bool explain = arguments.has("explain");
    const int code = selection.plan ? 0 : static_cast<int>(ErrorCode::unsupported);
    if (context.json) {
        const tilewise::Work work = chosen_work(*problem, selection, **arch, thread_count);
        print(with_work(selection_to_json(selection), work_to_json(work, **arch)).dump());
        if (!selection.plan) print_error("tilewise: " + no_kernel(*problem, selection, **arch).message);
        return code;
    }
    print_problem_facts(*problem);
    if (!selection.plan) {
        if (explain) print_rejections(selection, explain);
        return no_kernel(*problem, selection, **arch);
    }
    const Kernel& chosen = *selection.plan->kernel;
    print(fmt::format("\n{} {}\nsource: {}: {}", paint("plan:", Colour::green), chosen.name,
                      name_of(selection.plan->source), selection.plan->why));
    if (const Family* family = find_family(chosen.config, **arch); family && explain) {
        print(fmt::format("family: {}: {}", family->name(), family->description));
        // None for a padded problem, which is launched as another one.
        const auto launch = launch_plan(*problem, chosen.config, **arch, thread_count);
        if (launch) print(fmt::format("launch: {}", launch_to_json(*launch).dump()));
    }
    for (const Note& note : selection.plan->notes) print(fmt::format("note:   {}", note.message));
    const tilewise::Work work = explain ? chosen_work(*problem, selection, **arch, thread_count) : tilewise::Work{};
    if (!work.nodes.empty()) print_work(work, **arch);
    if (explain && selection.plan->learned) print_learned(*selection.plan->learned);
    if (*top > 0) print_candidates(selection, *top);
    print_rejections(selection, explain);
    return 0;
}

}  // namespace tilewise::cli
