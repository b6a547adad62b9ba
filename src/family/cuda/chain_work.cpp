// SPDX-License-Identifier: MIT
#include "family/cuda/chain_work.hpp"

namespace tilewise {

template <class N>
N chain_cycles(const WorkProblem& problem, double results) {
    const ChainCounts& chain = problem.chain;
    if (chain.is_plain()) return 0.0;
    const auto& price = problem.arch.prices.epilogue;
    const N work = longest({term<N>("instructions", results * chain.instructions, price.instruction_cycles),
                            term<N>("powers", results * chain.powers, price.power_cycles)});
    N cycles = named("operations", work);
    if (chain.has_bias) cycles = cycles + N(price.bias_cycles);
    if (chain.tensors == 0) return cycles;
    return cycles + N(price.tensor_wait_cycles) + term<N>("C and D", results * chain.tensors, price.tensor_cycles);
}
template double chain_cycles<double>(const WorkProblem&, double);
template Term chain_cycles<Term>(const WorkProblem&, double);
template Noted chain_cycles<Noted>(const WorkProblem&, double);
template Least chain_cycles<Least>(const WorkProblem&, double);

}  // namespace tilewise
