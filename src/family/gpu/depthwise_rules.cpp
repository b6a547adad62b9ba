// SPDX-License-Identifier: MIT
#include "family/gpu/depthwise_rules.hpp"

#include <fmt/core.h>

#include "config/depthwise_spec.hpp"
#include "problem/facts.hpp"

namespace tilewise::depthwise_rules {

std::string depthwise_lines(const KernelConfig& c, const ArchSpec& arch) {
    const DepthwiseSpec spec = depthwise_spec(c, arch);
    std::string lines = fmt::format("    static constexpr int resident_blocks = {};\n", spec.resident_blocks);
    if (spec.ring_stages > 0) {
        lines += fmt::format("    static constexpr int line_slots = {}, ring_stages = {};\n", spec.line_slots,
                             spec.ring_stages);
    }
    return lines;
}

bool split_sums(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return c.split_k > 1 && c.op != Op::conv_bwd_weight &&
           refuse(out, TILEWISE_TEXT("split_k {}", c.split_k), TILEWISE_TEXT("1"));
}

bool other_types(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    return !(bytes_of(c.dtype) == 2 && c.dtype_b == c.dtype &&
             (c.op == Op::conv_bwd_weight || c.dtype_out == c.dtype)) &&
           refuse(out, TILEWISE_TEXT("{} x {} -> {}", name_of(c.dtype), name_of(c.dtype_b), name_of(c.dtype_out)),
                  TILEWISE_TEXT("fp16 or bf16"));
}

bool other_matrix_vectors(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    constexpr int kVector = 8;
    const int second = c.op == Op::conv_bwd_weight ? c.vector_b : c.vector_c;
    return (c.vector_a != kVector || second != kVector) &&
           refuse(out, TILEWISE_TEXT("vectors of {} and {}", c.vector_a, second), TILEWISE_TEXT("{}", kVector));
}

bool dilated(const KernelConfig& c, const ArchSpec&, Rejected* out) {
    for (int d = 0; d < c.ct_dilation.rank; ++d) {
        if (c.ct_dilation[d] == 1) continue;
        return refuse(out, TILEWISE_TEXT("dilation {}", c.ct_dilation[d]), TILEWISE_TEXT("1"));
    }
    return false;
}

}  // namespace tilewise::depthwise_rules
