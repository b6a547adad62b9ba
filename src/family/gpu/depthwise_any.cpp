// SPDX-License-Identifier: MIT
#include "family/gpu/depthwise_any.hpp"

#include "family/gpu/gpu_source.hpp"
#include "problem/facts.hpp"

namespace tilewise::depthwise_any {

bool compiled_strides(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return (c.ct_stride.rank > 0 || c.ct_dilation.rank > 0) &&
           refuse(out, TILEWISE_TEXT("a stride or dilation that is compiled in"),
                  TILEWISE_TEXT("none without a filter"));
}

bool other_vectors(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    const bool fits = c.op == Op::conv_bwd_weight ? c.vector_a == 1 && c.vector_b == 1
                                                  : c.vector_a == 1 || is_channels_last(c.layout);
    return !fits && refuse(out, TILEWISE_TEXT("vectors of {} and {} in {}", c.vector_a, c.vector_b, name_of(c.layout)),
                           TILEWISE_TEXT("1; or more along channels, but not in backward weight"));
}

std::string source(const KernelConfig& c, const ArchSpec& arch) {
    return gpu_source({"gpu/depthwise_any", c.op == Op::conv_bwd_weight ? depthwise_rules::kSecondKernel : ""}, c, arch,
                      depthwise_rules::depthwise_lines(c, arch));
}

}  // namespace tilewise::depthwise_any
