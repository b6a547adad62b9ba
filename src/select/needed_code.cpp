// SPDX-License-Identifier: MIT
#include "select/needed_code.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>

#include "family/may_run.hpp"
#include "family/problem_to_run.hpp"
#include "problem/chain.hpp"
#include "problem/problem_text.hpp"
#include "registry/rule_set_registry.hpp"
#include "run/kernel_code.hpp"
#include "run/row_launch.hpp"
#include "select/measured_ranker.hpp"
#include "select/select.hpp"

namespace tilewise {
namespace {

// Rule sets are expanded once for all problems of the same operation and types.
class Registries {
public:
    Registries(const ArchSpec& arch, RuleSet set) : arch_(arch), set_(set) {}

    Result<const Registry*> find(const Problem& p) {
        const std::string key =
            fmt::format("{} {} {} {}", name_of(p.op), name_of(p.dtype_a), name_of(p.dtype_b), name_of(p.dtype_out));
        auto& registry = known_[key];
        if (registry) return registry.get();
        auto kernels = list_kernels(query_for(p, arch_, set_));
        if (!kernels) return kernels.error();
        registry = std::make_unique<Registry>(key);
        registry->add(std::move(*kernels));
        return registry.get();
    }

private:
    const ArchSpec& arch_;
    RuleSet set_;
    std::map<std::string, std::unique_ptr<Registry>> known_;
};

// The best of the candidates that have code, or what a sweep would measure, and those that were measured to be fastest.
KernelList wanted_of(const Problem& problem, Selection& selection, const NeedOptions& options) {
    KernelList wanted;
    if (options.pool) {
        for (const Candidate& one : pool_of(problem, selection.candidates, *options.pool, options.seed))
            wanted.push_back(one.kernel);
    }
    for (const Candidate& candidate : selection.candidates) {
        if (options.pool || wanted.size() == options.top) break;
        if (candidate.kernel->available) wanted.push_back(candidate.kernel);
    }
    const std::string text = print_problem(problem);
    for (const TuningRecord& record : options.tuned) {
        if (record.problem != text) continue;
        for (const Candidate& candidate : selection.candidates) {
            const bool is_listed = std::find(wanted.begin(), wanted.end(), candidate.kernel) != wanted.end();
            if (candidate.kernel->name == record.kernel && !is_listed) wanted.push_back(candidate.kernel);
        }
    }
    return wanted;
}

// Copies for padding are a GPU kernel of their own.
bool pads_on_gpu(const Problem& problem, const KernelConfig& config, const ArchSpec& arch) {
    const auto other = arch.is_gpu() ? problem_to_run(problem, config, arch) : std::nullopt;
    return other && other->note;
}

}  // namespace

Result<std::vector<BuildRequest>> launch_requests(const Problem& problem, const KernelConfig& config,
                                                  const ArchSpec& arch, std::string_view suffix) {
    std::vector<BuildRequest> requests;
    auto code = build_request(config, arch, suffix, arch.is_gpu() ? std::optional(chain_of(problem)) : std::nullopt);
    if (!code) return code.error();
    requests.push_back(std::move(*code));
    if (pads_on_gpu(problem, config, arch)) requests.push_back(row_kernel_request(arch, suffix));
    return requests;
}

Result<std::vector<BuildRequest>> launch_requests(const Problem& problem, const KernelConfig& config,
                                                  const Device& device, Builder& builder) {
    auto code = choose_code(problem, config, device, builder);
    if (!code) return code.error();
    std::vector<BuildRequest> requests;
    requests.push_back(std::move(code->request));
    if (pads_on_gpu(problem, config, device.arch())) {
        requests.push_back(row_kernel_request(device.arch(), device.code_suffix()));
    }
    return requests;
}

Result<KernelList> needed_kernels(Runtime& runtime, const Problem& problem, const SelectOptions& options) {
    if (!options.measures()) {
        auto plan = runtime.dispatcher->plan(problem, options);
        if (!plan) return plan.error();
        return KernelList{(*plan)->kernel};
    }
    SelectOptions ranked = options;
    ranked.strategy = Strategy::rules;
    const auto selection = runtime.dispatcher->select(problem, ranked, Reasons::counted);
    if (!selection) return selection.error();
    auto kernels = kernels_to_measure(*selection, options, runtime.device->arch());
    if (!kernels.empty()) return kernels;
    return unsupported_error(fmt::format("no kernel for {} may run {}: {}", runtime.device->arch().name,
                                         print_problem(problem), why_none(*selection)));
}

Result<std::vector<NeededKernel>> needed_kernels(std::span<const Problem> problems, const ArchSpec& arch,
                                                 const NeedOptions& options) {
    Registries registries(arch, options.rule_set);
    std::vector<NeededKernel> needed;
    std::map<std::string, std::size_t> place;  // by kernel, chain and whether it pads
    for (std::size_t i = 0; i < problems.size(); ++i) {
        const Problem& problem = problems[i];
        const auto registry = registries.find(problem);
        if (!registry) return registry.error();
        Selection selection = select_kernel(problem, **registry, arch, options.threads, Reasons::counted);
        const KernelList wanted = wanted_of(problem, selection, options);
        if (wanted.empty() && !options.pool) {
            return unsupported_error(
                fmt::format("no kernel for {} may run {}: {}", arch.name, print_problem(problem), why_none(selection)));
        }
        for (const KernelPtr& kernel : wanted) {
            const bool pads = pads_on_gpu(problem, kernel->config, arch);
            const std::string key = fmt::format("{} {} {}", kernel->name, print_chain(chain_of(problem)), pads);
            const auto [at, is_new] = place.emplace(key, needed.size());
            if (is_new) needed.push_back({kernel, i, 0});
            ++needed[at->second].uses;
        }
    }
    std::stable_sort(needed.begin(), needed.end(),
                     [](const NeededKernel& a, const NeededKernel& b) { return a.uses > b.uses; });
    return needed;
}

}  // namespace tilewise
