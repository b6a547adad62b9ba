// SPDX-License-Identifier: MIT
// Element types as users write them: in our words, or in those of NumPy, ml_dtypes and torch ("float32", "torch.bfloat16"). They
// are printed in ours.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "problem/types.hpp"

namespace tilewise {

Result<DType> read_dtype(std::string_view word);

}  // namespace tilewise
