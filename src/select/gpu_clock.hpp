// SPDX-License-Identifier: MIT
// The clock that the cost models of GPUs count in: that of the H200 on which their constants were fitted.
#pragma once

namespace tilewise {

inline constexpr double kCyclesPerUs = 1700;

}  // namespace tilewise
