// SPDX-License-Identifier: MIT
#include "family/may_run.hpp"

#include <vector>

#include "config/rule_groups.hpp"
#include "config/workspace.hpp"
#include "family/family.hpp"

namespace tilewise {
namespace {

constexpr NamedRule kPlanRule = {"fit_plan", "the family finds a plan for the problem that fits the chip"};
constexpr NamedRule kWorkspaceRule = {"fit_workspace", "scratch memory stays within the problem's limit"};

bool is_beyond_limit(const Problem& p, std::int64_t bytes, Rejected* why) {
    const std::int64_t limit = p.workspace_bytes;
    return limit != kNoWorkspaceLimit && bytes > limit &&
           refuse(why, TILEWISE_TEXT("{} bytes of workspace", bytes), TILEWISE_TEXT("at most {}", limit));
}

bool broken(const NamedRule& rule, Rejected* why) {
    if (why) why->rule = rule.name;
    return false;
}

}  // namespace

std::span<const NamedRule> run_rules() {
    static const std::vector<NamedRule> rules = [] {
        std::vector<NamedRule> all;
        for (const FitRule& rule : fit_rules()) all.push_back({rule.name, rule.reason});
        all.push_back(kPlanRule);
        all.push_back(kWorkspaceRule);
        return all;
    }();
    return rules;
}

namespace {

// Only a plan can say the rest, and what workspace it takes.
bool has_plan(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch, Rejected* why,
              std::optional<LaunchPlan>* searched) {
    const Family* family = find_family(c, arch);
    if (!family || !family->searches) {
        return v.problem.workspace_bytes == kNoWorkspaceLimit ||
               !is_beyond_limit(v.problem, workspace_bytes(v, c, arch), why) || broken(kWorkspaceRule, why);
    }
    auto plan = family->plan(v.problem, c, arch, 1, why);
    if (!plan) return broken(kPlanRule, why);
    plan->workspace_bytes = workspace_bytes(v, c, arch, plan->planned_parts());
    if (is_beyond_limit(v.problem, plan->workspace_bytes, why)) return broken(kWorkspaceRule, why);
    if (searched) *searched = std::move(plan);
    return true;
}

}  // namespace

bool may_run(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch, Rejected* why,
             std::optional<LaunchPlan>* searched) {
    if (searched) searched->reset();
    return !first_misfit(v, c, arch, why) && has_plan(v, c, arch, why, searched);
}

bool may_run_itself(const ProblemView& v, const KernelConfig& c, const ArchSpec& arch,
                    std::optional<LaunchPlan>* searched) {
    if (searched) searched->reset();
    return !breaks_own_rule(v, c, arch) && has_plan(v, c, arch, nullptr, searched);
}

std::optional<LaunchPlan> launch_plan(const Problem& p, const KernelConfig& c, const ArchSpec& arch, int threads,
                                      Rejected* why) {
    std::optional<LaunchPlan> plan;
    const ProblemView view(p);
    if (!may_run(view, c, arch, why, &plan) || plan) return plan;
    const Family* family = find_family(c, arch);
    if (!family) return std::nullopt;
    plan = family->plan(p, c, arch, threads, why);
    if (plan) plan->workspace_bytes = workspace_bytes(view, c, arch, plan->planned_parts());
    return plan;
}

}  // namespace tilewise
