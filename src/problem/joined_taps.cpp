// SPDX-License-Identifier: MIT
#include "problem/joined_taps.hpp"

#include "problem/facts.hpp"

namespace tilewise {
namespace {

bool is_cut_into_patches(const ConvShape& s, int dimension) {
    const std::int64_t taps = s.filter[dimension];
    return taps > 1 && s.stride[dimension] == taps && s.dilation[dimension] == 1 && s.pad_before[dimension] == 0 &&
           s.pad_after[dimension] == 0 && s.in[dimension] % taps == 0;
}

// Vectors with an element for each channel of the input would need one for each tap of it.
bool has_vector_along_input(const Problem& p) {
    return p.op != Op::conv_fwd && (has_bias(p) || p.scale != Scale::none);
}

}  // namespace

std::optional<Problem> with_joined_taps(const Problem& given) {
    if (given.op == Op::gemm || !is_channels_last(given.layout) || given.packed_b) return {};
    Problem joined = given;
    ConvShape& s = joined.conv;
    const int last = s.in.rank - 1;
    if (s.g == 1 && is_cut_into_patches(s, last) && !has_vector_along_input(given)) {
        s.c *= s.filter[last];
        s.in[last] /= s.filter[last];
        s.filter[last] = s.stride[last] = 1;
    }
    if (last > 0 && is_cut_into_patches(s, 0)) {
        s.n *= s.in[0] / s.filter[0];
        s.in[0] = s.filter[0];
        s.stride[0] = 1;
    }
    if (s == given.conv || check_problem(joined)) return {};
    return joined;
}

}  // namespace tilewise
