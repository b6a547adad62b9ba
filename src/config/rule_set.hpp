// SPDX-License-Identifier: MIT
// Expands a named rule set to configs for one arch, operation and pair of input types. Every config it returns is
// valid on the arch; the order is that of the blocks (recipe.hpp), so expansion is deterministic.
//
//   full        everything the recipes derive
//   default     the pool that selection uses and models are trained on
//   profiler, tests    curated instances, both within full
//   full-tests  every n-th of full per category, and every pipeline x scheduler pair
//   tiny        one of full-tests per category and dimension, filled up to a least number
//   builtin     what is compiled into the library: few, within default, for every problem; tiny where no recipe lists any
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "config/arch_spec.hpp"
#include "config/recipe.hpp"

namespace tilewise {

std::vector<DTypePair> pairs_of(const ArchSpec& arch);

// Sampling takes some configs of each category: one feature, or "regular".
std::string_view category(const KernelConfig& config);

// `out` is the element type of the output, the usual one unless given.
Result<std::vector<KernelConfig>> expand(const ArchSpec& arch, Op op, const DTypePair& dtypes, RuleSet set,
                                         std::optional<DType> out = std::nullopt);
// One block alone, whatever set it is in and whatever it needs.
std::vector<KernelConfig> expand(const ArchSpec& arch, Op op, const DTypePair& dtypes, const Recipe& recipe,
                                 const Block& block);
// All pairs of input types, one after the other.
Result<std::vector<KernelConfig>> expand(const ArchSpec& arch, Op op, RuleSet set);

}  // namespace tilewise
