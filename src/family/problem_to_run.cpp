// SPDX-License-Identifier: MIT
#include "family/problem_to_run.hpp"

#include "family/may_run.hpp"
#include "problem/joined_taps.hpp"

namespace tilewise {

std::optional<PaddedProblem> problem_to_run(const Problem& given, const KernelConfig& config, const ArchSpec& arch,
                                            Rejected* why, const Problem* fitting) {
    if (may_run(ProblemView(given), config, arch, why)) return std::nullopt;
    if (const auto joined = with_joined_taps(given)) {
        if (may_run(ProblemView(*joined), config, arch)) return PaddedProblem{*joined, {}, {}, {}};
        if (auto padded = padded_problem(*joined, config, arch, nullptr, fitting)) return padded;
    }
    return padded_problem(given, config, arch, why, fitting);
}

ProblemsToRun::ProblemsToRun(const Problem& given, const Problem& whole, const ArchSpec& arch)
    : given_(given), whole_(whole), arch_(arch), joined_(with_joined_taps(given)) {}

std::optional<PaddedProblem> ProblemsToRun::of(const KernelConfig& config) const {
    if (joined_) {
        if (may_run(ProblemView(given_), config, arch_)) return std::nullopt;
        if (may_run(ProblemView(*joined_), config, arch_)) return PaddedProblem{*joined_, {}, {}, {}};
        if (auto padded = padded_silently(*joined_, config, arch_, &whole_)) return padded;
    }
    return padded_silently(given_, config, arch_, &whole_);
}

bool may_run_otherwise(const Problem& given, std::string_view rule) {
    return is_about_sizes(rule) || with_joined_taps(given).has_value();
}

std::optional<Problem> with_whole_channels(const Problem& given) {
    if (!with_padded_channels(given)) return std::nullopt;
    const Problem joined = with_joined_taps(given).value_or(given);
    return with_padded_channels(joined).value_or(joined);
}

}  // namespace tilewise
