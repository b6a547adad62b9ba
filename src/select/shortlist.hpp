// SPDX-License-Identifier: MIT
// Which of the ranked kernels are worth measuring: the model's best, but few of one algorithm and tile. An error of the model
// concerns a whole algorithm, so that the best of the others find more than further variants of the first do.
#pragma once

#include <vector>

#include "registry/registry.hpp"
#include "select/select.hpp"

namespace tilewise {

// At most `count`, best first; without predictions the first ones.
KernelList shortlist(const std::vector<Candidate>& ranked, std::size_t count);

}  // namespace tilewise
