// SPDX-License-Identifier: MIT
#include "config/conv_tiles.hpp"
#include "family/cuda/block_product_least.hpp"
#include "family/cuda/block_product_work.hpp"
#include "family/cuda/works.hpp"

namespace tilewise {
namespace {

// How much longer products take whose operands are looked up; chunks that begin anywhere are also put together.
template <class N>
N look_up_share(const KernelConfig& c, const ArchSpec& arch) {
    const auto& price = arch.prices.gather_conv;
    const bool wide = c.vector_a * bytes_of(c.dtype) >= 4 && c.vector_b * bytes_of(c.dtype_b) >= 4;
    if (wide) return N(price.look_up_share);
    if (!reads_chunks_anywhere(c)) return N(price.by_element_share);
    const N share(c.op == Op::conv_fwd        ? price.forward_chunk_share
                  : c.op == Op::conv_bwd_data ? price.data_chunk_share
                                              : price.weight_chunk_share);
    return c.vector_a == 1 && c.vector_b == 1 ? share * N(price.both_sides_share) : share;
}

}  // namespace

// A product like others, but looking up addresses takes its time from the arithmetic.
template <class N>
N gather_conv_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan*) {
    return named("product", block_product_us<N>(worked_view(problem.view.problem, problem.view.gemm, c), problem, c)) *
           look_up_share<N>(c, problem.arch);
}
template double gather_conv_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term gather_conv_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted gather_conv_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

double gather_conv_least(const WorkProblem& problem, const KernelConfig& c, const WorkColumns& columns) {
    return block_product_least(worked_view(problem.view.problem, problem.view.gemm, c), problem, c,
                               columns.as<BlockColumns>()) *
           look_up_share<double>(c, problem.arch);
}

}  // namespace tilewise
