// SPDX-License-Identifier: MIT
#include "sweep/sweep_plan.hpp"

#include <algorithm>

#include "config/rules.hpp"
#include "family/family.hpp"
#include "kernels/common/random.hpp"

namespace tilewise {
namespace {

// Why a config that was named is no candidate whatever the problem is.
std::optional<Rejected> refusal(const KernelConfig& config, const ArchSpec& arch) {
    if (config.arch != arch.name) return Rejected{"arch", config.arch, arch.name};
    if (auto violations = check_config(config, arch); !violations.empty()) return violations.front();
    Rejected why;
    if (!has_code(config, arch, &why)) return why;
    return std::nullopt;
}

Result<std::vector<PlannedKernel>> named_kernels(Dispatcher& dispatcher, const Problem& problem,
                                                 const PoolOptions& options) {
    const ArchSpec& arch = dispatcher.device().arch();
    std::vector<PlannedKernel> refused;
    Registry registry("named");
    for (const KernelConfig& config : *options.configs) {
        Kernel kernel = make_kernel(config, Priority::normal, true);
        if (auto why = refusal(config, arch)) {
            refused.push_back({std::make_shared<const Kernel>(std::move(kernel)), std::nullopt, std::move(why)});
        } else {
            registry.add(std::move(kernel));
        }
    }
    SelectOptions selecting;
    selecting.strategy = Strategy::rules;
    selecting.registry = &registry;
    auto selection = dispatcher.select(problem, selecting);
    if (!selection) return selection.error();
    std::vector<PlannedKernel> planned;
    for (const Candidate& candidate : selection->candidates)
        planned.push_back({candidate.kernel, candidate.predicted_us});
    for (const RejectedKernel& one : selection->rejected) planned.push_back({one.kernel, std::nullopt, one.why});
    planned.insert(planned.end(), refused.begin(), refused.end());
    return planned;
}

}  // namespace

std::vector<std::size_t> sweep_order(std::size_t problems, std::uint64_t seed, const Shard& shard) {
    std::vector<std::size_t> order;
    for (std::size_t i = shard.index; i < problems; i += shard.count) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return random_bits(seed, a) < random_bits(seed, b); });
    return order;
}

Result<std::vector<PlannedKernel>> planned_kernels(Dispatcher& dispatcher, const Problem& problem,
                                                   const PoolOptions& options) {
    if (options.configs) return named_kernels(dispatcher, problem, options);
    SelectOptions selecting;
    selecting.strategy = Strategy::rules;
    selecting.rule_set = options.rule_set;
    auto selection = dispatcher.select(problem, selecting, Reasons::counted);
    if (!selection) return selection.error();
    const auto chosen = pool_of(problem, std::move(selection->candidates), options.pool, options.seed);
    std::vector<PlannedKernel> planned;
    planned.reserve(chosen.size());
    for (const Candidate& candidate : chosen) planned.push_back({candidate.kernel, candidate.predicted_us});
    return planned;
}

}  // namespace tilewise
