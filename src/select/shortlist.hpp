// SPDX-License-Identifier: MIT
// Which of the ranked kernels are worth measuring: the model's best, but few of one algorithm and tile. An error of the model
// concerns a whole algorithm, so that the best of the others find more than further variants of the first do.
#pragma once

#include <cstdint>
#include <vector>

#include "registry/registry.hpp"
#include "select/select.hpp"

namespace tilewise {

// At most `count`, best first; without predictions the first ones.
KernelList shortlist(const std::vector<Candidate>& ranked, std::size_t count);

// Those that a sweep measures in place of all: the model's first 24, the best of up to 8 algorithms that are not among them, and 8 of
// the rest, drawn by the seed. In the model's order.
std::vector<Candidate> sample_candidates(const std::vector<Candidate>& ranked, std::uint64_t seed);

}  // namespace tilewise
