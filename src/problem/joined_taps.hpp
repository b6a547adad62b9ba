// SPDX-License-Identifier: MIT
// A convolution whose filter lies on the image without overlaps or gaps, as where an image is cut into patches, is another one on the
// same memory: taps along a row of pixels are channels, and a row of patches is an image. Few channels become many, and the stride goes.
#pragma once

#include <optional>

#include "problem/problem.hpp"

namespace tilewise {

// The other convolution, with the same operands. Nothing where there is none; of the conditions, those of one dimension suffice.
std::optional<Problem> with_joined_taps(const Problem& given);

}  // namespace tilewise
