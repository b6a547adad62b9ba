// SPDX-License-Identifier: MIT
// Which of the ranked kernels are worth measuring: the model's best, but not all of one kind. What the model gets wrong it gets
// wrong for a whole kind, so that the best of other kinds find more than further variants of the first do.
#pragma once

#include <vector>

#include "registry/registry.hpp"
#include "select/select.hpp"

namespace tilewise {

// At most `count`, best first; without predictions the first ones.
KernelList shortlist(const std::vector<Candidate>& ranked, std::size_t count);

}  // namespace tilewise
