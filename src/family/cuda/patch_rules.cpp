// SPDX-License-Identifier: MIT
#include "family/cuda/patch_rules.hpp"

#include <algorithm>

#include "config/geometry.hpp"
#include "family/cuda/patch_tile.hpp"
#include "problem/facts.hpp"

namespace tilewise::patch_rules {

bool other_conv_types(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const std::int64_t bytes = bytes_of(c.dtype);
    return !(c.dtype == c.dtype_b && bytes <= 2 && (c.op == Op::conv_fwd || bytes == 2)) &&
           refuse(out, TILEWISE_TEXT("{} x {}", name_of(c.dtype), name_of(c.dtype_b)),
                  TILEWISE_TEXT("one type of 16 bits, or of 8 in forward"));
}

bool other_conv_shape(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kStepRows = 16, kStepColumns = 8;
    return (c.warp_tile.m != kStepRows || c.warp_tile.n != kStepColumns) &&
           refuse(out, TILEWISE_TEXT("warp tile {}", print_shape(c.warp_tile)),
                  TILEWISE_TEXT("{} x {}", kStepRows, kStepColumns));
}

bool narrow_chunks(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kChunkBytes = 16;
    return c.vector_a * bytes_of(c.dtype) != kChunkBytes &&
           refuse(out, TILEWISE_TEXT("vector_a {}", c.vector_a), TILEWISE_TEXT("{}", kChunkBytes / bytes_of(c.dtype)));
}

// Single elements are for the input of first layers. Groups that are multiplied together fill chunks of the result: no layer does that whose
// waves have fewer columns.
bool narrow_results(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const bool single = c.op == Op::conv_bwd_data && c.vector_c == 1 && c.vector_b == 1;
    const std::int64_t wave_bytes = c.tile.n / std::max(1, c.wave.n) * bytes_of(c.dtype_out);
    if (access_bytes(c, 1) < kPatchChunkBytes && c.vector_c != 1 && wave_bytes < kPatchChunkBytes) {
        return refuse(out, TILEWISE_TEXT("{} bytes of results for each of {} waves along n", wave_bytes, c.wave.n),
                      TILEWISE_TEXT("chunks of {} bytes", kPatchChunkBytes));
    }
    return c.vector_c * bytes_of(c.dtype_out) < 4 && !single &&
           refuse(out, TILEWISE_TEXT("vector_c {}", c.vector_c),
                  TILEWISE_TEXT("4 bytes; or 1 with vector_b 1 in backward data"));
}

bool other_specialization(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.specialization != Specialization::none && !shares_patch_rows(c) &&
           refuse(out, TILEWISE_TEXT("specialization {}", name_of(c.specialization)),
                  TILEWISE_TEXT("none, or 3x3 in 2-D"));
}

}  // namespace tilewise::patch_rules
