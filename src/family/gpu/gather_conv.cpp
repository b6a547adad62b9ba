// SPDX-License-Identifier: MIT
#include "family/gpu/gather_conv.hpp"

#include "problem/facts.hpp"

namespace tilewise::gather_conv {

bool other_gather(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const bool async =
        c.pipeline == Pipeline::mem || c.pipeline == Pipeline::comp_async || c.pipeline == Pipeline::basic_async_v1;
    return (c.gather == Gather::async) != async &&
           refuse(out, TILEWISE_TEXT("gather {} with pipeline {}", name_of(c.gather), name_of(c.pipeline)),
                  TILEWISE_TEXT("gather {}", async ? "async" : "plain"));
}

bool shared_classes(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.stream_k != StreamK::off && c.op == Op::conv_bwd_data &&
           refuse(out, TILEWISE_TEXT("stream_k {}", name_of(c.stream_k)), TILEWISE_TEXT("off in backward data"));
}

bool three_products(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.math == Math::tf32x3 && refuse(out, TILEWISE_TEXT("tf32x3"), TILEWISE_TEXT("another math class"));
}

bool vectors_across(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const bool wide = c.vector_a > 1 || c.vector_b > 1 || c.vector_c > 1;
    return wide && !is_channels_last(c.layout) &&
           refuse(
               out,
               TILEWISE_TEXT("vectors of {}, {} and {} in {}", c.vector_a, c.vector_b, c.vector_c, name_of(c.layout)),
               TILEWISE_TEXT("1, or a layout with channels last"));
}

}  // namespace tilewise::gather_conv
