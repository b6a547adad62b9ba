// SPDX-License-Identifier: MIT
#include "registry/rule_set_registry.hpp"

#include <fmt/core.h>

#include "base/sha256.hpp"
#include "config/config_name.hpp"
#include "family/family.hpp"

namespace tilewise {

KernelQuery query_for(const Problem& problem, const ArchSpec& arch, RuleSet set) {
    return {&arch, set, problem.op, DTypePair{problem.dtype_a, problem.dtype_b}, problem.dtype_out};
}

Result<std::vector<KernelConfig>> configs_of(const ArchSpec& arch, Op op, const DTypePair& pair, RuleSet set,
                                             std::optional<DType> out) {
    auto configs = expand(arch, op, pair, set, out);
    if (configs && set == RuleSet::standard) {
        std::erase_if(*configs, [&](const KernelConfig& config) { return !has_code(config, arch); });
    }
    return configs;
}

Result<std::vector<Kernel>> list_kernels(const KernelQuery& query) {
    std::vector<Kernel> kernels;
    for (const Op op : kAllOps) {
        if (query.op && *query.op != op) continue;
        for (const DTypePair& pair : pairs_of(*query.arch)) {
            if (query.dtypes && *query.dtypes != pair) continue;
            auto configs = configs_of(*query.arch, op, pair, query.set, query.out);
            if (!configs) return configs.error();
            for (KernelConfig& config : *configs) {
                const bool available = has_code(config, *query.arch);
                kernels.push_back(make_kernel(std::move(config), Priority::normal, available));
            }
        }
    }
    return kernels;
}

Result<std::string> rule_set_manifest(const ArchCatalog& catalog) {
    constexpr std::size_t kDigestDigits = 16;
    std::string text = "# arch op dtype set count digest; update with `make manifest`\n";
    for (const ArchSpec& arch : catalog.archs()) {
        for (const Op op : kAllOps) {
            for (const DTypePair& pair : pairs_of(arch)) {
                for (const RuleSet set : kAllRuleSets) {
                    auto configs = configs_of(arch, op, pair, set);
                    if (!configs) return configs.error();
                    std::string names;
                    for (const KernelConfig& config : *configs) names += kernel_name(config) + '\n';
                    text += fmt::format("{} {} {} {} {} {}\n", arch.name, name_of(op), print_pair(pair), name_of(set),
                                        configs->size(), sha256_hex(names).substr(0, kDigestDigits));
                }
            }
        }
    }
    return text;
}

}  // namespace tilewise
