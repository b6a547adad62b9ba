// SPDX-License-Identifier: MIT
// The end of a run: geometric means of ratios by kind of case and family, as a Markdown table.
#pragma once

#include <string>
#include <vector>

#include "benchmarks/contest.hpp"

namespace tilewise::bench {

// `kinds` names the words of kind_of. A ratio is a peer's time over ours: above 1, tilewise is faster. "fastest peer" takes
// the best of them for each problem. "model alone" is our fastest kernel's time over that of the model's choice: 1
// where the model needs no measuring.
std::string summary(const std::vector<Comparison>& comparisons, const std::vector<std::string>& kinds,
                    const std::vector<std::string>& peer_names);

}  // namespace tilewise::bench
