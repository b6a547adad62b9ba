// SPDX-License-Identifier: MIT
// The ranker that measures: times the model's best few on scratch tensors, takes the fastest and remembers it.
#pragma once

#include "select/ranker.hpp"

namespace tilewise {

// The candidates that would be measured.
KernelList kernels_to_measure(const Selection& selection, const SelectOptions& options, const ArchSpec& arch);

Result<Ranked> rank_by_measuring(const RankContext& context, Selection& selection);

}  // namespace tilewise
