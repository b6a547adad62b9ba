// SPDX-License-Identifier: MIT
#include "family/cuda/gemv_rules.hpp"

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

}  // namespace tilewise::gemv_rules
