// SPDX-License-Identifier: MIT
// Which problem a kernel runs in the place of one that it does not take as it is: the same convolution seen otherwise
// (problem/joined_taps.hpp), which copies nothing, or a padded one (padded_problem.hpp).
#pragma once

#include "family/padded_problem.hpp"

namespace tilewise {

// Nothing where the problem fits as it is, and where no other helps; then `why`, unless null, gets the broken rule. A kernel that is known
// to fit a problem, unless null, is not asked about those sizes again.
std::optional<PaddedProblem> problem_to_run(const Problem& given, const KernelConfig& config, const ArchSpec& arch,
                                            Rejected* why = nullptr, const Problem* fitting = nullptr);

// The same for many kernels, without a word, of those that are known to fit `whole`, the problem of with_whole_channels.
class ProblemsToRun {
public:
    ProblemsToRun(const Problem& given, const Problem& whole, const ArchSpec& arch);

    std::optional<PaddedProblem> of(const KernelConfig& config) const;
    // Whether a kernel may also run the convolution as another on the same memory.
    bool joins_taps() const { return joined_.has_value(); }

private:
    const Problem& given_;
    const Problem& whole_;
    const ArchSpec& arch_;
    std::optional<Problem> joined_;
};

// Whether a kernel that breaks the rule may run the problem after all: for sorting out kernels without working it out.
bool may_run_otherwise(const Problem& given, std::string_view rule);

// What GPU kernels run fastest in the place of a convolution whose channels are not whole chunks of 16 bytes; nothing where they are.
std::optional<Problem> with_whole_channels(const Problem& given);

}  // namespace tilewise
