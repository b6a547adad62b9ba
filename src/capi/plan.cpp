// SPDX-License-Identifier: MIT
// The C functions on a plan: choosing a kernel, on a context or for an arch, and asking about the choice.
#include <fmt/core.h>

#include "capi/archs.hpp"
#include "capi/call.hpp"
#include "capi/handles.hpp"
#include "capi/models.hpp"
#include "capi/query.hpp"
#include "config/config_json.hpp"
#include "device/cpu/thread_pool.hpp"
#include "family/family.hpp"
#include "problem/problem_text.hpp"
#include "select/ranker.hpp"

namespace tilewise::capi {
namespace {

constexpr double kNoPrediction = -1;

// The caller's function as the dispatcher's ranking: places become names, and what is no place is left out.
Ranking ranking_of(tilewise_rank rank, void* user) {
    return [=](const Problem& problem, const std::vector<Candidate>& candidates) {
        std::vector<const char*> names;
        std::vector<double> predicted;
        for (const Candidate& candidate : candidates) {
            names.push_back(candidate.kernel->name.c_str());
            predicted.push_back(candidate.predicted_us.value_or(kNoPrediction));
        }
        const auto count = static_cast<std::int32_t>(candidates.size());
        std::vector<std::int32_t> order(candidates.size(), -1);
        const std::int32_t written =
            rank(user, print_problem(problem).c_str(), names.data(), predicted.data(), count, order.data());
        std::vector<std::string> wanted;
        for (std::int32_t i = 0; i < std::min(written, count); ++i) {
            const std::int32_t place = order[static_cast<std::size_t>(i)];
            if (place >= 0 && place < count) wanted.emplace_back(names[static_cast<std::size_t>(place)]);
        }
        return wanted;
    };
}

}  // namespace

Result<ReadChoice> read_choice(const tilewise_select_options* given) {
    tilewise_select_options from{};
    if (given) {
        if (auto status = read_sized(given, "tilewise_select_options", from); !status) return status.error();
    }
    ReadChoice read;
    SelectOptions& options = read.choice.options;
    if (from.kernel) {
        auto config = read_config_argument(from.kernel);
        if (!config) return config.error();
        read.choice.kernel = std::move(*config);
    }
    if (from.strategy) {
        const auto strategy = parse_enum<Strategy>(from.strategy);
        if (!strategy) return strategy.error();
        options.strategy = *strategy;
    }
    if (from.rule_set) {
        const auto set = parse_enum<RuleSet>(from.rule_set);
        if (!set) return set.error();
        options.rule_set = *set;
    }
    if (from.top < 0) return usage_error("tilewise_select_options: top is negative; need 0 or more");
    if (from.top > 0) options.measure_top = static_cast<std::size_t>(from.top);
    options.stream = from.stream;
    if (from.registry) {
        read.registry = std::make_unique<Pinned<tilewise_registry>>(from.registry);
        if (!*read.registry) return not_open(from.registry);
        options.registry = &(*read.registry)->kernels;
    }
    if (from.rank) options.rank = ranking_of(from.rank, from.rank_user);
    if (from.arch) read.arch = from.arch;
    return read;
}

namespace {

Result<Selection> select_on(Runtime& runtime, const Problem& problem, const ReadChoice& read) {
    if (!read.arch.empty()) return usage_error("tilewise_select_options: arch is for plans without a context");
    if (!read.choice.kernel) return runtime.dispatcher->select(problem, read.choice.options);
    auto plan = runtime.dispatcher->named_plan(problem, *read.choice.kernel);
    if (!plan) return plan.error();
    Selection selection;
    selection.candidates.push_back({plan->kernel, std::nullopt});
    selection.plan = std::move(*plan);
    return selection;
}

Result<Selection> select_for_arch(const Problem& problem, const ReadChoice& read) {
    const SelectOptions& options = read.choice.options;
    if (read.choice.kernel || options.strategy == Strategy::measure || options.strategy == Strategy::first_fit) {
        return usage_error("a named kernel and the strategies measure and first-fit need a context, which is NULL");
    }
    const auto arch = read_arch(read.arch.c_str());
    if (!arch) return arch.error();
    Registry listed;
    if (!options.registry) {
        auto list = list_kernels(query_for(problem, **arch, options.rule_set));
        if (!list) return list.error();
        listed.add(std::move(*list));
    }
    const auto threads = default_threads();
    if (!threads) return threads.error();
    return select_by(options, usual_models(), problem, options.registry ? *options.registry : listed, **arch, *threads);
}

Status create_plan(tilewise_context* context, const char* text, const tilewise_select_options* given,
                   tilewise_plan** out) {
    if (!out) return usage_error("the output pointer is NULL");
    *out = nullptr;
    const Pinned<tilewise_context> pinned(context);
    if (context && !pinned) return not_open(context);
    auto problem = read_problem_argument(text);
    if (!problem) return problem.error();
    const auto read = read_choice(given);
    if (!read) return read.error();
    auto runtime = context ? pinned->runtime : nullptr;
    auto selection = runtime ? select_on(*runtime, *problem, *read) : select_for_arch(*problem, *read);
    if (!selection) return selection.error();
    std::string why = selection->plan ? selection->plan->why : why_none(*selection);
    *out = open_handle(std::unique_ptr<tilewise_plan>(
        new tilewise_plan{std::move(runtime), std::move(*problem), std::move(*selection), std::move(why)}));
    return {};
}

Status prepare_plan(const tilewise_plan& plan, tilewise_executable** out) {
    if (!out) return usage_error("the output pointer is NULL");
    *out = nullptr;
    if (!plan.runtime) return usage_error("the plan was made without a context and cannot be prepared");
    if (!plan.selection.plan) {
        return unsupported_error(fmt::format("no kernel may run {}: {}", print_problem(plan.problem), plan.why));
    }
    auto ready = plan.runtime->dispatcher->executable_now(plan.problem, *plan.selection.plan);
    if (!ready) return ready.error();
    *out = open_handle(std::unique_ptr<tilewise_executable>(
        new tilewise_executable{plan.runtime, plan.problem, *plan.selection.plan, std::move(*ready)}));
    return {};
}

Error outside(const char* what, std::int64_t index, std::size_t size) {
    return usage_error(fmt::format("index {} is outside the plan, which has {} {}", index, size, what));
}

Status candidate(const Selection& selection, std::int64_t index, const char** kernel, double* predicted_us) {
    const auto& all = selection.candidates;
    if (index < 0 || static_cast<std::size_t>(index) >= all.size()) return outside("candidates", index, all.size());
    const Candidate& one = all[static_cast<std::size_t>(index)];
    if (kernel) *kernel = one.kernel->name.c_str();
    if (predicted_us) *predicted_us = one.predicted_us.value_or(kNoPrediction);
    return {};
}

Status rejection(const Selection& selection, std::int64_t index, const char** kernel, const char** rule,
                 const char** have, const char** need) {
    const auto& all = selection.rejected;
    if (index < 0 || static_cast<std::size_t>(index) >= all.size()) return outside("rejections", index, all.size());
    const RejectedKernel& one = all[static_cast<std::size_t>(index)];
    if (kernel) *kernel = one.kernel->name.c_str();
    if (rule) *rule = one.why.rule.c_str();
    if (have) *have = one.why.have.c_str();
    if (need) *need = one.why.need.c_str();
    return {};
}

}  // namespace
}  // namespace tilewise::capi

extern "C" {

tilewise_status tilewise_plan_create(tilewise_context* context, const char* problem,
                                     const tilewise_select_options* options, tilewise_plan** plan) {
    return tilewise::capi::guarded([&] { return tilewise::capi::create_plan(context, problem, options, plan); });
}

void tilewise_plan_destroy(tilewise_plan* plan) { tilewise::capi::close(plan); }

tilewise_status tilewise_plan_describe(const tilewise_plan* plan, char** json) {
    return tilewise::capi::give_text_of(plan, json, [](tilewise_plan& p) -> tilewise::Result<std::string> {
        return tilewise::selection_to_json(p.selection).dump();
    });
}

const char* tilewise_plan_kernel(const tilewise_plan* plan) {
    return tilewise::capi::value_of(
        plan, "", [](tilewise_plan& p) { return p.selection.plan ? p.selection.plan->kernel->name.c_str() : ""; });
}

const char* tilewise_plan_source(const tilewise_plan* plan) {
    return tilewise::capi::value_of(
        plan, "", [](tilewise_plan& p) { return p.selection.plan ? name_of(p.selection.plan->source).data() : ""; });
}

const char* tilewise_plan_why(const tilewise_plan* plan) {
    return tilewise::capi::value_of(plan, "", [](tilewise_plan& p) { return p.why.c_str(); });
}

int64_t tilewise_plan_candidate_count(const tilewise_plan* plan) {
    return tilewise::capi::value_of(
        plan, int64_t{0}, [](tilewise_plan& p) { return static_cast<int64_t>(p.selection.candidates.size()); });
}

tilewise_status tilewise_plan_candidate(const tilewise_plan* plan, int64_t index, const char** kernel,
                                        double* predicted_us) {
    return tilewise::capi::with(
        plan, [&](tilewise_plan& p) { return tilewise::capi::candidate(p.selection, index, kernel, predicted_us); });
}

int64_t tilewise_plan_rejection_count(const tilewise_plan* plan) {
    return tilewise::capi::value_of(plan, int64_t{0},
                                    [](tilewise_plan& p) { return static_cast<int64_t>(p.selection.rejected.size()); });
}

tilewise_status tilewise_plan_rejection(const tilewise_plan* plan, int64_t index, const char** kernel,
                                        const char** rule, const char** have, const char** need) {
    return tilewise::capi::with(plan, [&](tilewise_plan& p) {
        return tilewise::capi::rejection(p.selection, index, kernel, rule, have, need);
    });
}

tilewise_status tilewise_plan_prepare(const tilewise_plan* plan, tilewise_executable** executable) {
    return tilewise::capi::with(plan, [&](tilewise_plan& p) { return tilewise::capi::prepare_plan(p, executable); });
}

}  // extern "C"
