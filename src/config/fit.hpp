// SPDX-License-Identifier: MIT
// Whether a kernel may run a problem: the rules between the two, as config/rules.hpp has those of a config alone.
// The plain answer allocates nothing and stops at the first broken rule; the numbers are built when asked for.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/rejected.hpp"
#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "problem/facts.hpp"
#include "problem/problem.hpp"

namespace tilewise {

// A problem with the facts that every rule would otherwise compute again.
struct ProblemView {
    explicit ProblemView(const Problem& p);

    const Problem& problem;
    GemmView gemm;
    std::array<std::int64_t, 3> elements;
    std::array<std::int64_t, 3> longest_strides;  // of a product's operands, in elements: at least any that is in use
};

struct FitRule {
    std::string_view name;
    std::string_view reason;
    bool (*broken)(const ProblemView&, const KernelConfig&, const ArchSpec&, Rejected* out);
    bool is_shared = false;  // configs of which fits_alike holds get the same answer
};
std::span<const FitRule> fit_rules();  // in the order they are checked, cheapest first

// The first broken rule, or null; `out`, unless null, gets rule, have and need.
const FitRule* first_misfit(const ProblemView& view, const KernelConfig& config, const ArchSpec& arch,
                            Rejected* out = nullptr);

// Whether two configs agree in every field that the shared rules read, so that these are asked once for many kernels.
bool fits_alike(const KernelConfig& a, const KernelConfig& b);
// Both parts of first_misfit as plain answers: the rules that a config shares with others, and its own.
bool breaks_shared_rule(const ProblemView& view, const KernelConfig& config, const ArchSpec& arch);
bool breaks_own_rule(const ProblemView& view, const KernelConfig& config, const ArchSpec& arch);

// Whether every row of an operand begins on a boundary of the kernel's vectors: by its pointer and by its strides.
bool starts_aligned(const Problem& problem, const KernelConfig& config, int operand);

}  // namespace tilewise
