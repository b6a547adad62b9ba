// SPDX-License-Identifier: MIT
#include <algorithm>

#include "family/cuda/block_product_work.hpp"
#include "family/cuda/works.hpp"

namespace tilewise {
namespace {

// Residue classes of strided backward data meet every stride-th tap only.
GemmView worked_view(const ProblemView& view, const KernelConfig& c) {
    GemmView v = view.gemm;
    if (c.op != Op::conv_bwd_data) return v;
    const ConvShape& s = view.problem.conv;
    std::int64_t taps = v.k, classes = 1;
    for (int i = 0; i < s.in.rank; ++i) classes *= std::min(s.stride[i], s.filter[i]);
    v.k = std::max<std::int64_t>(1, taps / classes);
    return v;
}

}  // namespace

// A product like others, but looking up addresses takes its time from the arithmetic.
template <class N>
N gather_conv_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan*) {
    const auto& price = problem.arch.prices.gather_conv;
    const bool wide = c.vector_a * bytes_of(c.dtype) >= 4 && c.vector_b * bytes_of(c.dtype_b) >= 4;
    return named("product", block_product_us<N>(worked_view(problem.view, c), problem, c)) *
           N(wide ? price.look_up_share : price.by_element_share);
}
template double gather_conv_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term gather_conv_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

}  // namespace tilewise
