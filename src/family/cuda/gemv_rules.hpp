// SPDX-License-Identifier: MIT
// Rules of the two families that multiply by a few vectors in one pass over the large operand.
#pragma once

#include "family/code_rules.hpp"

namespace tilewise::gemv_rules {

inline constexpr Pipeline kPipelines[] = {Pipeline::compv3};

bool uneven_types(const KernelConfig& config, const ArchSpec& arch, Rejected* out);
bool other_tile(const KernelConfig& config, const Shape3& tile, Rejected* out);
bool other_vectors(const KernelConfig& config, const ArchSpec& arch, Rejected* out);

inline constexpr ConfigRule kSameSize = {"code_types", "both operands have elements of one size", uneven_types};
inline constexpr ConfigRule kVectors = {
    "code_vectors", "lines and vectors along k come by 16 bytes; 16-bit lines and vectors may begin anywhere",
    other_vectors};

}  // namespace tilewise::gemv_rules
