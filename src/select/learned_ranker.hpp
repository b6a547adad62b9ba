// SPDX-License-Identifier: MIT
// The rankers that ask a learned model, where there is one for the problem's operation, types and arch. It corrects the analytic times of
// the candidates that may be the fastest, which then come first, in the order of the corrected times.
#pragma once

#include "select/ranker.hpp"

namespace tilewise {

Result<Ranked> rank_by_learned_model(const RankContext& context, Selection& selection);   // passes without one
Result<Ranked> order_by_learned_model(const RankContext& context, Selection& selection);  // the same, and always passes
Result<Ranked> fail_without_learned_model(const RankContext& context, Selection& selection);

}  // namespace tilewise
