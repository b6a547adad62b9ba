// SPDX-License-Identifier: MIT
// Which of the ranked kernels are worth measuring: the model's best, but few of one algorithm and tile. An error of the model
// concerns a whole algorithm, so that the best of the others find more than further variants of the first do.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
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

// A sweep measures a pool. all: every kernel that may run the problem. sample: the model's first 24, the best of up to 8 algorithms that are
// not among them, and 8 of the rest, drawn by the problem and the seed.
enum class KernelPool : std::uint8_t { all, sample };
template <>
struct EnumNames<KernelPool> {
    static constexpr std::string_view kind = "pool of kernels";
    static constexpr std::array<std::string_view, 2> names = {"all", "sample"};
};

// In the model's order.
std::vector<Candidate> pool_of(const Problem& problem, std::vector<Candidate> ranked, KernelPool pool,
                               std::uint64_t seed);

}  // namespace tilewise
