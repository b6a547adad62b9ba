// SPDX-License-Identifier: MIT
// Which of the ranked kernels are worth measuring: the model's best, but few of one algorithm and tile. An error of the model
// concerns a whole algorithm, so that the best of the others find more than further variants of the first do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "registry/registry.hpp"
#include "select/select.hpp"

namespace tilewise {

// How a kernel computes: the instruction, which operand fills its rows, and how the reduction is shared out.
using Algorithm = std::tuple<int, bool, bool, bool, bool>;
Algorithm algorithm_of(const KernelConfig& config);

// The places of the candidates that a learned model looks at: the analytic model's first, and the best of other algorithms that it does
// not find much slower. None of those that are padded.
inline constexpr std::size_t kFirstLearned = 24, kOtherLearned = 8;
inline constexpr double kSlowestLearned = 3.0;  // times the analytic model's best
std::vector<std::size_t> places_to_learn(const std::vector<Candidate>& ranked);

// At most `count`, best first; without predictions the first ones.
KernelList shortlist(const std::vector<Candidate>& ranked, std::size_t count);

// Those that a sweep measures in place of all: the model's first 24, the best of up to 8 algorithms that are not among them, and 8 of
// the rest, drawn by the seed. In the model's order.
std::vector<Candidate> sample_candidates(const std::vector<Candidate>& ranked, std::uint64_t seed);

}  // namespace tilewise
