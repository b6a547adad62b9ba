// SPDX-License-Identifier: MIT
// The ranker that remembers: the kernel that was measured to be the fastest for this very problem, on this device and with the
// same code.
#pragma once

#include "select/ranker.hpp"

namespace tilewise {

Result<Ranked> rank_by_tuned_record(const RankContext& context, Selection& selection);

}  // namespace tilewise
