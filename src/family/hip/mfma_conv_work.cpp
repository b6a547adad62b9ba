// SPDX-License-Identifier: MIT
#include "family/hip/mfma_conv_work.hpp"

#include "config/conv_tiles.hpp"
#include "family/hip/mfma_gemm_work.hpp"
#include "problem/facts.hpp"

namespace tilewise {

template <class N>
N mfma_conv_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan*) {
    const auto& price = problem.arch.prices.mfma_conv;
    const double tiles = static_cast<double>(gather_conv_tiles(problem.view.problem, problem.view.gemm, c)) / c.split_k;
    const bool wide = c.vector_a * bytes_of(c.dtype) >= 4 && c.vector_b * bytes_of(c.dtype_b) >= 4;
    const N share(wide ? price.look_up_share : price.by_element_share);
    return named("product",
                 mfma_product_us<N>(worked_view(problem.view.problem, problem.view.gemm, c), tiles, problem, c)) *
           share;
}
template double mfma_conv_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term mfma_conv_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted mfma_conv_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

}  // namespace tilewise
