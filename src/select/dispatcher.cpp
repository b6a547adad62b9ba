// SPDX-License-Identifier: MIT
#include "select/dispatcher.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>

#include "base/activity.hpp"
#include "base/fork_safe_mutex.hpp"
#include "build/compile.hpp"
#include "config/rules.hpp"
#include "family/family.hpp"
#include "family/launch_plan.hpp"
#include "family/may_run.hpp"
#include "family/problem_to_run.hpp"
#include "problem/empty_problem.hpp"
#include "problem/problem_text.hpp"
#include "registry/rule_set_registry.hpp"
#include "select/measured_ranker.hpp"
#include "select/padded_offers.hpp"
#include "select/ranker.hpp"

namespace tilewise {
namespace {

std::string registry_key(const Problem& p, RuleSet set) {
    return fmt::format("{} {} {} {} {}", name_of(p.op), name_of(p.dtype_a), name_of(p.dtype_b), name_of(p.dtype_out),
                       name_of(set));
}

Note background_note(const Kernel& better, const Kernel& serving) {
    return {"background", ErrorCode::check_failed,
            fmt::format("{} is being compiled; until it is there the built-in {} serves (TILEWISE_BACKGROUND=0 waits)",
                        better.name, serving.name)};
}

Note capture_note() {
    return {"capture", ErrorCode::check_failed,
            "nothing was measured, since the stream is being captured; measure before the capture, or with tilewise "
            "tune"};
}

// "KERNEL, rules: why"
std::string outcome_text(const Selection& selection) {
    if (!selection.plan) return fmt::format("no kernel: {}", why_none(selection));
    const Plan& plan = *selection.plan;
    std::string text = fmt::format("{}, {}: {}", plan.kernel->name, name_of(plan.source), plan.why);
    for (const Note& note : plan.notes) text += fmt::format("; note: {}", note.message);
    return text;
}

void tell_candidates(const Selection& selection) {
    constexpr std::size_t kTold = 5;
    for (std::size_t i = 0; i < std::min(kTold, selection.candidates.size()); ++i) {
        const Candidate& one = selection.candidates[i];
        write_line(fmt::format("  candidate {}: {}{}", i + 1, one.kernel->name,
                               one.predicted_us ? fmt::format(", predicted {:.1f} us", *one.predicted_us) : ""));
    }
    write_line(fmt::format("  {} candidates, {} rejected", selection.candidates.size(), selection.rejected_count));
}

}  // namespace

Result<const Dispatcher::Listed*> Dispatcher::listed_for(const Problem& problem, RuleSet set) {
    const std::string key = registry_key(problem, set);
    if (const auto* found = listed_.find(key)) return found;
    auto kernels = list_kernels(query_for(problem, device_.arch(), set));
    if (!kernels) return kernels.error();
    Listed listed{std::make_unique<Registry>(key), nullptr};
    listed.registry->add(std::move(*kernels));
    KernelList runnable =
        listed.registry->filter([&](const Kernel& kernel) { return !device_.refuses(kernel.config); });
    listed.table = std::make_unique<ChoiceTable>(runnable, device_.arch());
    const std::scoped_lock lock(fork_safe_mutex());
    return &listed_.add(key, std::move(listed));
}

// Kernels that pad, where others do not.
void Dispatcher::drop_padded(Selection& selection) {
    const auto is_padded = [](const Candidate& candidate) { return candidate.padding.has_value(); };
    if (std::all_of(selection.candidates.begin(), selection.candidates.end(), is_padded)) return;
    selection.rejected_count += std::erase_if(selection.candidates, is_padded);
}

// Kernels without code, and those that this very device cannot run.
void Dispatcher::drop_refused(Selection& selection) const {
    const auto refusal = [&](const Kernel& kernel) -> std::optional<Rejected> {
        if (!kernel.available) return Rejected{"available", "no code for the config", "one that has"};
        return device_.refuses(kernel.config);
    };
    std::vector<Candidate> kept;
    for (Candidate& candidate : selection.candidates) {
        if (auto why = refusal(*candidate.kernel)) {
            selection.rejected.push_back({candidate.kernel, std::move(*why)});
            ++selection.rejected_count;
        } else {
            kept.push_back(std::move(candidate));
        }
    }
    selection.candidates = std::move(kept);
}

// Looking for a compiler takes time, so it is the last question. The answer is kept, since it takes the digest of the source: many
// problems have the same kernel. Once there is a compiler, no kernel lacks it.
bool Dispatcher::lacks_compiler(const Problem& problem, const Kernel& kernel) {
    if (has_compiler_) return false;
    const std::uint32_t generation = generation_;
    const Chain chain = device_.arch().is_gpu() ? chain_of(problem) : Chain{};
    const std::string name = chain.is_plain() ? kernel.name : fmt::format("{}+{}", kernel.name, print_chain(chain));
    if (const bool* known = lacks_compiler_.find(KernelKey<const std::string&>{name, generation})) return *known;
    const auto code = choose_code(problem, kernel.config, device_, builder_);
    const bool needs = code && builder_.needs_compiler(code->request);
    const bool lacks = needs && !builder_.has_compiler(code->request);
    if (needs && !lacks) has_compiler_ = true;
    const std::scoped_lock lock(fork_safe_mutex());
    return lacks_compiler_.add({name, generation}, lacks);
}

// On a machine without a compiler: keeps the kernels that are cached, packed or built in. When there are none, all stay, so
// that building the chosen one fails and says what to do. Returns whether any went.
bool Dispatcher::drop_unobtainable(const Problem& problem, Selection& selection) {
    const auto obtainable = [&](const Candidate& candidate) {
        const auto code = choose_code(problem, candidate.kernel->config, device_, builder_);
        return code && !builder_.needs_compiler(code->request);
    };
    const auto gone = std::stable_partition(selection.candidates.begin(), selection.candidates.end(), obtainable);
    if (gone == selection.candidates.begin() || gone == selection.candidates.end()) return false;
    for (auto at = gone; at != selection.candidates.end(); ++at) {
        selection.rejected.push_back({at->kernel,
                                      {"obtainable", "no compiler, and the kernel is not cached, packed or built in",
                                       "a compiler on PATH or in TILEWISE_CXX, or a pack with the kernel"}});
        ++selection.rejected_count;
    }
    selection.candidates.erase(gone, selection.candidates.end());
    return true;
}

Result<Selection> Dispatcher::select(const Problem& problem, const SelectOptions& options, Reasons reasons) {
    if (is_empty(problem)) {
        SelectOptions unmeasured = options;  // there is nothing to measure
        if (options.measures()) unmeasured.strategy = Strategy::automatic;
        auto selection = select(stand_in(problem), unmeasured, reasons);
        if (selection) say_empty(problem, *selection);
        return selection;
    }
    if (must_not_measure(options)) {
        SelectOptions unmeasured = options;
        unmeasured.strategy = Strategy::automatic;
        auto ranked = select(problem, unmeasured, reasons);
        if (ranked && ranked->plan) ranked->plan->notes.push_back(capture_note());
        return ranked;
    }
    const Registry* registry = options.registry;
    if (!registry) {
        const auto listed = listed_for(problem, options.rule_set);
        if (!listed) return listed.error();
        registry = (*listed)->registry.get();
    }
    Selection selection = select_kernel(problem, *registry, device_.arch(), device_.max_threads(), reasons);
    drop_refused(selection);
    if (options.as_given) drop_padded(selection);
    // Which kernels might run it padded depends on why they may not.
    if (selection.candidates.empty() && reasons == Reasons::counted) return select(problem, options, Reasons::told);
    if (selection.candidates.empty()) {
        offer_padded(problem, device_.arch(), device_.max_threads(), selection);
        drop_refused(selection);
    }
    if (selection.candidates.empty()) {
        selection.plan.reset();
    } else if (auto status = choose_obtainable(problem, options, selection); !status) {
        return status.error();
    }
    return selection;
}

// Chooses, and again among what can be had when what was chosen cannot.
Status Dispatcher::choose_obtainable(const Problem& problem, const SelectOptions& options, Selection& selection) {
    bool dropped = false;
    if (options.measures()) {
        // Several are built, so that one of them can be had is not enough.
        const KernelList tried = kernels_to_measure(selection, options, device_.arch());
        const auto lacking = [&](const KernelPtr& kernel) { return lacks_compiler(problem, *kernel); };
        dropped = std::any_of(tried.begin(), tried.end(), lacking) && drop_unobtainable(problem, selection);
    }
    const RankContext context{problem, options,  device_.max_threads(), &device_, &builder_,
                              tuning_, records_, &device_.arch(),       models_};
    auto status = choose(context, selection);
    if (status && !dropped && lacks_compiler(problem, *selection.plan->kernel) &&
        drop_unobtainable(problem, selection)) {
        dropped = true;
        status = choose(context, selection);
    }
    if (status) note_padding(selection);
    if (status && dropped) {
        const auto compiler = find_toolchain(device_.code_suffix(), builder_.settings());
        selection.plan->notes.push_back(
            {"compiler", ErrorCode::toolchain,
             fmt::format("only kernels that are cached, packed or built in were chosen from, without a compiler: {}",
                         compiler ? "there was none" : compiler.error().message)});
    }
    return status;
}

bool Dispatcher::has_record(const Problem& problem) const {
    return tuning_ && (tuning_->refused() || tuning_->find(device_.identity(), print_problem(problem)));
}

// The plan that select makes where the model decides, without ranking what does not come first. Nothing where more than the first kernel
// matters: a record may name another, and one that needs a compiler may have to give way.
std::optional<Selection> Dispatcher::select_first(const Problem& problem, const SelectOptions& options) {
    const bool learns = options.strategy == Strategy::automatic || options.strategy == Strategy::model;
    const bool is_ranked = learns || options.strategy == Strategy::rules;
    const ArchSpec& arch = device_.arch();
    if (!options.is_plain() || !is_ranked || is_empty(problem) || !has_families(arch.backend, problem.op)) return {};
    if (options.strategy == Strategy::automatic && has_record(problem)) return {};
    const auto listed = listed_for(problem, options.rule_set);
    if (!listed) return {};
    const ChoiceTable& table = *(*listed)->table;
    const bool has_model = learns && models_ && models_->find(problem, arch).model;
    Selection selection;
    selection.candidates =
        has_model ? table.to_learn(problem, device_.max_threads()) : table.first(problem, device_.max_threads(), 1);
    if (selection.candidates.empty()) return {};
    selection.looked_through = table.size();
    if (const auto whole = arch.is_gpu() ? with_whole_channels(problem) : std::nullopt) {
        // A model may yet find that all of its own take longer.
        const Candidate* rival = has_model ? nullptr : &selection.candidates.front();
        PaddedOffers offers(problem, *whole, arch, device_.max_threads(), rival);
        table.collect(*whole, device_.max_threads(), offers);
        offers.offer_best(selection);
    }
    // As the chain of `options` does where there is no record; what the model's files are to blame for is told in any case.
    const RankContext context{problem, options, device_.max_threads(), nullptr, nullptr, nullptr, nullptr,
                              &arch,   models_};
    if (!choose(context, selection) || lacks_compiler(problem, *selection.plan->kernel)) return {};
    note_padding(selection);
    return selection;
}

bool Dispatcher::must_not_measure(const SelectOptions& options) const {
    return options.measures() && device_.is_capturing(options.stream);
}

Result<std::shared_ptr<const Plan>> Dispatcher::plan(const Problem& problem, const SelectOptions& options) {
    const std::uint32_t generation = generation_;
    const PlanKey<const Problem&> key{problem, options.strategy, options.rule_set, generation};
    if (options.is_plain()) {
        if (const auto found = plans_.find(key)) {
            if (!found->is_old) return found->value;
            const std::scoped_lock lock(fork_safe_mutex());
            return plans_.add({problem, options.strategy, options.rule_set, generation}, found->value);
        }
    }
    if (must_not_measure(options)) {
        SelectOptions unmeasured = options;
        unmeasured.strategy = Strategy::automatic;
        const auto ranked = plan(problem, unmeasured);
        if (!ranked) return ranked.error();
        // Not kept: who asks again after the capture has it measured.
        auto noted = std::make_shared<Plan>(**ranked);
        noted->notes.push_back(capture_note());
        return std::shared_ptr<const Plan>(std::move(noted));
    }
    auto selection = select_told(problem, options);
    if (!selection) return selection.error();
    if (!selection->plan) {
        return unsupported_error(fmt::format("no kernel for {} may run {}: {}", device_.arch().name,
                                             print_problem(problem), why_none(*selection)));
    }
    auto made = std::make_shared<const Plan>(std::move(*selection->plan));
    if (!options.is_plain()) return made;
    const std::scoped_lock lock(fork_safe_mutex());
    return plans_.add({problem, options.strategy, options.rule_set, generation}, std::move(made));
}

Result<Selection> Dispatcher::select_told(const Problem& problem, const SelectOptions& options) {
    const std::string text = verbosity() != Verbosity::silent ? print_problem(problem) : std::string();
    Activity activity("choose", text);
    if (!activity.is_told()) {
        if (auto selection = select_first(problem, options)) return std::move(*selection);
        return select(problem, options, Reasons::counted);
    }
    auto selection = select(problem, options, Reasons::counted);
    activity.tell(selection ? outcome_text(*selection) : selection.error().message);
    if (selection && verbosity() == Verbosity::details) tell_candidates(*selection);
    return selection;
}

Result<Plan> Dispatcher::named_plan(const Problem& problem, const KernelConfig& config) {
    if (is_empty(problem)) return named_plan(stand_in(problem), config);
    const ArchSpec& arch = device_.arch();
    const auto violations = check_config(config, arch);
    if (!violations.empty()) {
        const Rejected& first = violations.front();
        return unsupported_error(
            fmt::format("the config is not valid on {}: rule {}: have {}; need {}{}", arch.name, first.rule, first.have,
                        first.need, violations.size() > 1 ? fmt::format(" (and {} more)", violations.size() - 1) : ""));
    }
    Rejected why;
    const bool misfit = !may_run(ProblemView(problem), config, arch);
    auto padded = misfit ? problem_to_run(problem, config, arch, &why) : std::nullopt;
    const auto refused = misfit && !padded ? std::optional(why) : device_.refuses(config);
    auto kernel = std::make_shared<const Kernel>(make_kernel(config, Priority::high, has_code(config, arch)));
    if (refused) {
        return unsupported_error(fmt::format("{} may not run {}: rule {}: have {}; need {}", kernel->name,
                                             print_problem(problem), refused->rule, refused->have, refused->need));
    }
    Plan plan{std::move(kernel), PlanSource::named, "asked for by name"};
    if (padded && padded->note) plan.notes.push_back(std::move(*padded->note));
    return plan;
}

// A built-in kernel for a problem whose own kernel has to be compiled first, which begins. Nothing where waiting is better: on a GPU,
// for a kernel that was asked for or measured, and where results or a packed B must not depend on the time.
std::optional<Executable> Dispatcher::serve_meanwhile(const Problem& problem, const Plan& plan) {
    const bool is_ranked =
        plan.source == PlanSource::rules || plan.source == PlanSource::tuned || plan.source == PlanSource::model;
    if (device_.arch().is_gpu() || !builder_.settings().background || !is_ranked) return {};
    if (problem.packed_b || problem.deterministic || is_empty(problem)) return {};
    const auto wanted = choose_code(problem, plan.kernel->config, device_, builder_);
    if (!wanted || !builder_.needs_compiler(wanted->request) || !builder_.has_compiler(wanted->request)) return {};
    const auto launch = launch_plan(problem, plan.kernel->config, device_.arch(), device_.max_threads());
    if (!launch) return {};
    SelectOptions options;
    options.strategy = Strategy::rules;
    options.rule_set = RuleSet::builtin;
    const auto selection = select(problem, options, Reasons::counted);
    if (!selection) return {};
    for (const Candidate& candidate : selection->candidates) {
        const auto code = choose_code(problem, candidate.kernel->config, device_, builder_);
        if (!candidate.is_as_given || !code || builder_.needs_compiler(code->request)) continue;
        auto serving = Executable::prepare(problem, *candidate.kernel, device_, builder_);
        if (!serving) return {};
        auto better = std::make_shared<Replacement>();
        serving->serve_until(better, launch->workspace_bytes, background_note(*plan.kernel, *candidate.kernel));
        background_.add({problem, plan.kernel, std::move(better)});
        return std::move(*serving);
    }
    return {};
}

std::shared_ptr<const Executable> Dispatcher::find_executable(const Problem& problem, const Plan& plan) {
    const auto found = executables_.find(ExecutableKey<const Problem&>{problem, plan.kernel});
    if (!found || !found->is_old) return found ? found->value : nullptr;
    const std::scoped_lock lock(fork_safe_mutex());
    return executables_.add({problem, plan.kernel}, found->value);
}

Result<std::shared_ptr<const Executable>> Dispatcher::executable_now(const Problem& problem, const Plan& plan) {
    if (auto found = find_executable(problem, plan)) return found;
    auto serving = serve_meanwhile(problem, plan);
    if (!serving) return executable(problem, plan);
    auto made = std::make_shared<const Executable>(std::move(*serving));
    const std::scoped_lock lock(fork_safe_mutex());
    return executables_.add({problem, plan.kernel}, std::move(made));
}

Result<std::shared_ptr<const Executable>> Dispatcher::executable(const Problem& problem, const Plan& plan) {
    const auto found = find_executable(problem, plan);
    if (found && !found->is_serving()) return found;
    auto ready = Executable::prepare(problem, *plan.kernel, device_, builder_, plan.launch.get());
    if (!ready) return ready.error();
    auto made = std::make_shared<const Executable>(std::move(*ready));
    if (found) return made;  // the table has the one that serves
    const std::scoped_lock lock(fork_safe_mutex());
    return executables_.add({problem, plan.kernel}, std::move(made));
}

}  // namespace tilewise
