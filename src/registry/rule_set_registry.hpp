// SPDX-License-Identifier: MIT
// Fills registries from rule sets, and describes rule sets by count and digest so that a change in one is seen.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "config/arch_catalog.hpp"
#include "config/rule_set.hpp"
#include "registry/registry.hpp"

namespace tilewise {

struct KernelQuery {
    const ArchSpec* arch = nullptr;
    RuleSet set = RuleSet::standard;
    std::optional<Op> op;             // unset: every operation
    std::optional<DTypePair> dtypes;  // unset: every pair of input types
    std::optional<DType> out;         // unset: the usual output of each
};
// Asks for the kernels of a problem: those of its operation and types.
KernelQuery query_for(const Problem& problem, const ArchSpec& arch, RuleSet set);

// The configs of a rule set, in its own order (config/rule_set.hpp). `default`, which selection uses, has those with code alone: which a
// family leaves out, and why, its rules say.
Result<std::vector<KernelConfig>> configs_of(const ArchSpec& arch, Op op, const DTypePair& pair, RuleSet set,
                                             std::optional<DType> out = std::nullopt);

// The kernels of the rule set in its own order.
Result<std::vector<Kernel>> list_kernels(const KernelQuery& query);

// One line for each arch, operation, pair of types and set: how many configs, and a digest of their names.
Result<std::string> rule_set_manifest(const ArchCatalog& catalog);

}  // namespace tilewise
