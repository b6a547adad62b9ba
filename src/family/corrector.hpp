// SPDX-License-Identifier: MIT
// Corrects a config until it is valid and has code: by the corrections of the rules, one after the other, and where these end
// without code or in another pipeline, by taking over what it takes from the most similar config that has code: one of the same
// pipeline where there is any. On an arch without code, valid is all it can be.
#pragma once

#include <map>
#include <tuple>

#include "config/rule_set.hpp"
#include "config/rules.hpp"

namespace tilewise {

// Remembers which configs an arch has code for, so that it corrects many quickly.
class Corrector {
public:
    explicit Corrector(const ArchSpec& arch) : arch_(arch) {}

    Correction correct(const KernelConfig& config);

private:
    using Key = std::tuple<Op, DType, DType, DType, RuleSet>;
    const std::vector<KernelConfig>& with_code(Op op, DType a, DType b, DType out, RuleSet set);
    const KernelConfig* nearest_of_pipeline(const KernelConfig& config);
    const KernelConfig* nearest(const KernelConfig& config);
    KernelConfig kept_of(const KernelConfig& config, KernelConfig known) const;

    const ArchSpec& arch_;
    std::map<Key, std::vector<KernelConfig>> with_code_;
};

}  // namespace tilewise
