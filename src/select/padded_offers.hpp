// SPDX-License-Identifier: MIT
// Kernels that run a problem padded, beside those that run it as it is: what they take with the copies.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "family/problem_to_run.hpp"
#include "family/work_problem.hpp"
#include "select/select.hpp"

namespace tilewise {

// Kernels of higher priority stay in front, equals in the registry's order.
void sort_by_time(std::vector<Candidate>& candidates);
// The time of a kernel that runs the padded problem, with the copies.
double padded_us(const PaddedProblem& padded, const KernelConfig& config, const ArchSpec& arch, int threads);

// Offers of kernels that run the problem padded: the first of those ranked for the problem of with_whole_channels, by the time that they
// take with the copies.
class PaddedOffers {
public:
    static constexpr std::size_t kMost = 16;

    // An offer is of use if it is better than `rival`, unless null.
    PaddedOffers(const Problem& given, const Problem& whole, const ArchSpec& arch, int threads,
                 const Candidate* rival = nullptr);

    // Takes the candidate, of those ranked for the whole channels the next, as an offer if it is one; false when there are enough.
    bool take(const Candidate& ranked);
    // Makes candidates of the selection of all of them, or of the best, in place among the others; returns how many.
    std::size_t offer_all(Selection& selection) const { return offer(candidates_, selection); }
    std::size_t offer_best(Selection& selection) const;

    // Whether a kernel that takes at least so long, copies included, may be the best of all.
    bool may_win(Priority priority, double least_us) const;
    // Whether one that takes at least so long for the whole channels, and runs these, may be.
    bool may_win_whole(Priority priority, double least_us) const;
    // Other sizes that kernels with the config's vectors run, which need fewer channels, and what copying takes at least.
    struct Narrow {
        Problem problem;
        double copying_us;
    };
    std::optional<Narrow> narrow(const KernelConfig& config) const;

private:
    std::size_t offer(std::span<const Candidate> offers, Selection& selection) const;

    const Problem& given_;
    ProblemView view_;
    ProblemsToRun problems_;
    const Problem& whole_;
    const ArchSpec& arch_;
    int threads_;
    const Candidate* rival_;
    double whole_copying_us_;              // at least
    std::vector<Candidate> candidates_{};  // in the order of the ranking, without notes
};

}  // namespace tilewise
