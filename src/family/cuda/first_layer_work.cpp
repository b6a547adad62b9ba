// SPDX-License-Identifier: MIT
// Forward of first layers (kernels/cuda/first_layer_conv).
#include "family/cuda/chain_work.hpp"
#include "family/cuda/first_layer_plan.hpp"
#include "family/cuda/works.hpp"

namespace tilewise {

template <class N>
N first_layer_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan* searched) {
    const ArchSpec& arch = problem.arch;
    const FirstLayerPlan plan = first_layer_plan_of(*searched->gpu());
    return longest({cycles_us<N>("cycles", first_layer_cycles<N>(plan, c, arch), arch),
                    bytes_us<N>("memory", problem.bytes, rate<N>(arch.memory_gbps))}) +
           rate<N>(arch.launch_us) + spread_chain_us<N>(problem);
}
template double first_layer_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term first_layer_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted first_layer_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

}  // namespace tilewise
