// SPDX-License-Identifier: MIT
// Corrects a config until it is valid and has code: by the corrections of the rules, one after the other, and where these end, by
// taking over what it takes from the most similar config that has code. On an arch without code, valid is all it can be.
#pragma once

#include <map>
#include <tuple>

#include "config/rules.hpp"

namespace tilewise {

// Remembers which configs an arch has code for, so that it corrects many quickly.
class Corrector {
public:
    explicit Corrector(const ArchSpec& arch) : arch_(arch) {}

    Correction correct(const KernelConfig& config);

private:
    using Key = std::tuple<Op, DType, DType, DType>;
    const std::vector<KernelConfig>& with_code(Op op, DType a, DType b, DType out);
    const KernelConfig* nearest(const KernelConfig& config);

    const ArchSpec& arch_;
    std::map<Key, std::vector<KernelConfig>> with_code_;
};

}  // namespace tilewise
