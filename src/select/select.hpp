// SPDX-License-Identifier: MIT
// From a problem to a plan: which kernel, where the choice came from, and why the others were not taken. A plan is a value
// that can be shown before anything is built or run, for archs this machine does not have as well.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/note.hpp"
#include "base/work_parts.hpp"
#include "family/launch_plan.hpp"
#include "learn/model.hpp"
#include "registry/registry.hpp"

namespace tilewise {

// Names who made a choice.
enum class PlanSource : std::uint8_t { tuned, measured, rules, first_fit, callback, named, model };
template <>
struct EnumNames<PlanSource> {
    static constexpr std::string_view kind = "source";
    static constexpr std::array<std::string_view, 7> names = {"tuned",    "measured", "rules", "first-fit",
                                                              "callback", "named",    "model"};
};

// What a learned model said about the kernel that it chose.
struct LearnedChoice {
    std::string model;      // its folder
    double weight = 1;      // how much of the correction is taken, by the distance from the data
    double confidence = 1;  // that the kernel is no slower than the next
    double analytic_us = 0;
    Estimate estimate{};
    std::vector<Model::Effect> effects{};  // what sets it apart from the analytic model's first, or from the next
};

struct Plan {
    KernelPtr kernel;
    PlanSource source;
    std::string why;
    std::vector<Note> notes{};                   // what is not as it should be about the choice
    std::shared_ptr<const LaunchPlan> launch{};  // where choosing the kernel took a plan
    std::shared_ptr<const LearnedChoice> learned{};
};

// A learned model's view of a candidate, whose predicted time is then the corrected one.
struct LearnedTime {
    double analytic_us = 0;
    Estimate estimate{};
};

struct Candidate {
    KernelPtr kernel;
    std::optional<double> predicted_us;  // unset where there is no model for the arch
    std::optional<Note> padding{};       // of a kernel that runs the problem padded only
    bool is_as_given = true;             // false where it runs another problem instead (family/problem_to_run.hpp)
    std::shared_ptr<const LaunchPlan> launch{};  // of the first, where choosing it took a plan
    std::optional<WorkParts> parts{};            // where they were noted with the time
    std::optional<LearnedTime> learned{};
    double mean_correction = 1;  // by a learned model, in predicted_us of a kernel that it has not looked at
};

struct Selection {
    std::optional<Plan> plan;              // unset when no kernel may run the problem
    std::vector<Candidate> candidates;     // in the order of preference
    std::vector<RejectedKernel> rejected;  // where reasons are told, or no kernel may run the problem
    std::size_t rejected_count = 0;
    // How many kernels there are, where only the first that may run the problem was looked for: the others are not listed.
    std::size_t looked_through = 0;
};

// Which kernels of the registry may run the problem, ranked by the analytic model for `threads` threads where the arch has
// one, by priority and name elsewhere; the plan is the first of them. One for an empty problem is that of its stand-in. Kernels that would need padding are offered where there is no
// other, and on a GPU where the channels of a convolution are no whole chunks of 16 bytes.
Selection select_kernel(const Problem& problem, const Registry& registry, const ArchSpec& arch, int threads,
                        Reasons reasons = Reasons::told);

struct SelectOptions;
class ModelStore;
// The same by the strategy of the options, which needs no device, or by their own ranking; learned models are asked where they are to be.
Result<Selection> select_by(const SelectOptions& options, ModelStore& models, const Problem& problem,
                            const Registry& registry, const ArchSpec& arch, int threads);

// Makes candidates of the rejected kernels that may run the problem padded, ranked likewise with the cost of the copies.
void offer_padded(const Problem& problem, const ArchSpec& arch, int threads, Selection& selection);
// Tells the plan of an empty problem's stand-in what becomes of it.
void say_empty(const Problem& problem, Selection& selection);
// Tells the plan if its kernel needs padding.
void note_padding(Selection& selection);

// A user's ranking: gets the candidates in the model's order and returns names, best first.
using Ranking = std::function<std::vector<std::string>(const Problem&, const std::vector<Candidate>&)>;

// How many kernels each rule rejected: "3 by fit_vector, 1 by fit_layout".
std::string counts_by_rule(const Selection& selection);
// Why no kernel may run the problem, of a selection without candidates.
std::string why_none(const Selection& selection);

Json selection_to_json(const Selection& selection);  // {plan, candidates, rejected}

}  // namespace tilewise
