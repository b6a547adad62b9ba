// SPDX-License-Identifier: MIT
#include "family/cuda/gemv_rules.hpp"

#include "config/family_id.hpp"
#include "config/geometry.hpp"
#include "problem/facts.hpp"

namespace tilewise::gemv_rules {

bool uneven_types(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return bytes_of(c.dtype) != bytes_of(c.dtype_b) &&
           refuse(out, TILEWISE_TEXT("{} x {}", name_of(c.dtype), name_of(c.dtype_b)), TILEWISE_TEXT("one size"));
}

bool other_tile(const KernelConfig& c, const Shape3& tile, Rejected* out) {
    return c.tile != tile &&
           refuse(out, TILEWISE_TEXT("tile {}", print_shape(c.tile)), TILEWISE_TEXT("{}", print_shape(tile)));
}

// Chunks from anywhere are shifted together from elements of 16 bits. The vectors pass through shared memory as elements of
// at least as many.
bool other_vectors(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr std::int64_t kAccessBytes = 16;
    const std::int64_t bytes = bytes_of(c.dtype), wide = kAccessBytes / bytes;
    const int large = c.swap_ab ? 1 : 0;
    for (const int i : {large, 1 - large}) {
        const bool may_be_wide = i == large || contiguous_axis(c, i) == Axis::k;
        const bool may_be_single = i == large ? bytes == 2 : bytes >= 2;
        const int width = vector_width(c, i);
        if ((may_be_wide && width == wide) || (may_be_single && width == 1)) continue;
        return refuse(out, TILEWISE_TEXT("vector_{} {}", kOperandName[i], width), [&] {
            if (!may_be_wide && !may_be_single)
                return std::string("vectors that lie along k, or elements of 16 or 32 bits");
            if (!may_be_wide) return std::string("1, across k");
            return may_be_single ? fmt::format("{} or 1", wide) : fmt::format("{}", wide);
        });
    }
    return false;
}

}  // namespace tilewise::gemv_rules
