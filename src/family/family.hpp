// SPDX-License-Identifier: MIT
// A family is a value: one algorithm with its template, one row of one table. A row says what the family computes, which configs it
// has code for and why not for others, what a block of a config is, and the source that is compiled. Every kernel belongs to one
// (config/family_id.hpp); to add a family, add its file in src/family/<backend> and its row in families.cpp.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "config/arch_spec.hpp"
#include "config/family_id.hpp"
#include "config/rules.hpp"
#include "family/launch_plan.hpp"
#include "family/launch_spec.hpp"
#include "family/work_problem.hpp"
#include "problem/chain.hpp"

namespace tilewise {

// The priced work of a launch: the predicted time in microseconds, alone, with the tree that leads to it (base/work.hpp), or with
// what parts it has (base/work_parts.hpp).
struct FamilyWork {
    double (*us)(const WorkProblem&, const KernelConfig&, const LaunchPlan* searched) = nullptr;
    Term (*term)(const WorkProblem&, const KernelConfig&, const LaunchPlan* searched) = nullptr;
    Noted (*parts)(const WorkProblem&, const KernelConfig&, const LaunchPlan* searched) = nullptr;
    // A time that `us` never falls below, whatever the plan, for any problem that keeps the rules that the config shares with others;
    // infinite where no plan is found. None where the prediction itself takes no longer. `columns` says what depends on the config and the arch alone.
    double (*least)(const WorkProblem&, const KernelConfig&, const WorkColumns&) = nullptr;
    WorkColumns (*columns)(const KernelConfig&, const ArchSpec&) = nullptr;
};

// The bound of a family whose plans, if it searches for any, do not change the time: the prediction itself, or that by bounds
// (base/least_work.hpp).
template <auto work>
double least_of_any_plan(const WorkProblem& problem, const KernelConfig& config, const WorkColumns&) {
    return static_cast<double>(work(problem, config, nullptr));
}

struct Family {
    FamilyId id;
    Backend backend;  // of the archs that it has code for
    std::string_view description;
    std::span<const Op> ops;
    std::span<const Pipeline> pipelines{};  // empty: every one
    bool has_interwave = false;             // loops whose waves give way to each other
    // Fields of a config that stay at their defaults: the template does nothing with them, or needs them so.
    std::span<const std::string_view> fixed{};
    std::span<const ConfigRule> rules{};  // what else a config needs to have code
    // A block of the config: known without a problem, and written into the source.
    LaunchSpec (*spec)(const KernelConfig&, const ArchSpec&);
    // How a problem that keeps the rules of config/fit.hpp is launched, the workspace apart, which follows from it (may_run.hpp). None
    // where there is no way, for which `why`, unless null, gets the numbers.
    std::optional<LaunchPlan> (*plan)(const Problem&, const KernelConfig&, const ArchSpec&, int threads, Rejected* why);
    // Whether a plan may be refused, and is what the kernel's time follows from. Others are planned when they are launched.
    bool searches = false;
    // Counts and prices that launch.
    FamilyWork work;
    // The text that instantiates the template.
    std::string (*source)(const KernelConfig&, const ArchSpec&);

    std::string_view name() const { return name_of(id); }
    bool is_gpu() const { return facts_of(backend).is_gpu; }
};

std::span<const Family* const> families();
// Whether any are for the backend, and for the operation there: without them its kernels have neither code nor work.
bool has_families(Backend backend);
bool has_families(Backend backend, Op op);
// The family of a config on its arch's backend; null where that has none.
const Family* find_family(const KernelConfig& config, const ArchSpec& arch);

// The time that the config is expected to take for a problem that it may run; infinite without a family. `searched` is its plan where
// its family searches for one (may_run.hpp); who has none leaves it out.
double predicted_us(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);
double predicted_us(const WorkProblem& problem, const KernelConfig& config);
// The parts that it has; none without a family, or where the plan is refused.
WorkParts work_parts_of(const WorkProblem& problem, const KernelConfig& config);
// The same as a tree; empty without a family.
Work work_of(const WorkProblem& problem, const KernelConfig& config);

// Whether there is code for the config; `why`, unless null, gets the first rule that says there is none.
bool has_code(const KernelConfig& config, const ArchSpec& arch, Rejected* why = nullptr);

// From a config to what a compiler needs: a short text that instantiates a template of kernels/, and the CPU features it is
// compiled for. Only code fields matter here: configs that differ in launch fields give the same text.
struct KernelSource {
    std::string text;
    std::vector<std::string> features;  // of the arch file, those that the kernel uses
};
// A GPU kernel is compiled for `chain`, or, without one, for every epilogue; a CPU kernel is always for every one.
Result<KernelSource> generate_source(const KernelConfig& config, const ArchSpec& arch,
                                     const std::optional<Chain>& chain = std::nullopt);

// The CPU features a kernel uses: those of its arch, and those its warp tile's depth needs.
std::vector<std::string> kernel_features(const KernelConfig& config, const ArchSpec& arch);

}  // namespace tilewise
