// SPDX-License-Identifier: MIT
#include "problem/empty_problem.hpp"

#include <algorithm>

#include "problem/facts.hpp"

namespace tilewise {

namespace {
bool has_empty_result(const GemmView& view) { return view.m == 0 || view.n == 0 || view.batch == 0; }
}  // namespace

bool has_empty_result(const Problem& p) { return has_empty_result(gemm_view(p)); }

bool has_empty_sums(const Problem& p) { return gemm_view(p).k == 0 && !has_empty_result(p); }

bool is_empty(const GemmView& view) { return view.k == 0 || has_empty_result(view); }
bool is_empty(const Problem& p) { return is_empty(gemm_view(p)); }

Problem stand_in(const Problem& p) {
    constexpr std::int64_t kChunk = 16;  // of k: whole vectors of any type
    Problem full = p;
    full.packed_b = false;
    // The zeros that take the place of A and B lie where a workspace does.
    full.align_bytes = std::min(p.align_bytes, kDefaultAlignBytes);
    full.conv.n = std::max<std::int64_t>(p.conv.n, is_conv(p.op) ? 1 : 0);
    if (is_conv(p.op)) return full;
    GemmShape& s = full.gemm;
    s.m = std::max<std::int64_t>(s.m, 1);
    s.n = std::max<std::int64_t>(s.n, 1);
    s.batch = std::max<std::int64_t>(s.batch, 1);
    if (s.k == 0) s.k = kChunk;
    const bool keeps_result = has_empty_sums(p);
    s.leading = {kPacked, kPacked, keeps_result ? s.leading[2] : kPacked};
    s.batch_stride = {0, 0, keeps_result ? s.batch_stride[2] : kPacked};
    return full;
}

}  // namespace tilewise
