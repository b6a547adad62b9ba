// SPDX-License-Identifier: MIT
// Depthwise convolutions that keep slices of channels in shared memory (kernels/cuda/depthwise_channel_slice).
#include "family/cuda/channel_slice_plan.hpp"
#include "family/cuda/works.hpp"

namespace tilewise {

template <class N>
N depthwise_slice_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan* searched) {
    const ArchSpec& arch = problem.arch;
    const ChannelSlicePlan plan = channel_slice_plan_of(*searched->gpu());
    return cycles_us<N>("cycles", channel_slice_cycles<N>(plan, problem.view.problem, c, arch), arch) +
           rate<N>(arch.launch_us);
}
template double depthwise_slice_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term depthwise_slice_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted depthwise_slice_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

}  // namespace tilewise
