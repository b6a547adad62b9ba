// SPDX-License-Identifier: MIT
// Backward weight by shifted runs of positions (kernels/cuda/shifted_wgrad).
#include "family/cuda/shifted_wgrad_plan.hpp"
#include "family/cuda/works.hpp"

namespace tilewise {

namespace {

template <class N>
N us_of(N cycles, const WorkProblem& problem, const KernelConfig& c) {
    const ArchSpec& arch = problem.arch;
    const N us = longest({cycles_us<N>("cycles", cycles, arch),
                          bytes_us<N>("memory", problem.bytes, rate<N>(arch.memory_gbps))}) +
                 rate<N>(arch.launch_us);
    return c.two_stage ? us + N(arch.prices.shifted_wgrad.second_kernel_us) : us;
}

}  // namespace

template <class N>
N shifted_wgrad_work(const WorkProblem& problem, const KernelConfig& c, const LaunchPlan* searched) {
    const ShiftedWgradPlan plan = shifted_wgrad_plan_of(*searched->gpu());
    return us_of(shifted_wgrad_cycles<N>(plan, problem.view.problem, c, problem.arch), problem, c);
}
template double shifted_wgrad_work<double>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Term shifted_wgrad_work<Term>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);
template Noted shifted_wgrad_work<Noted>(const WorkProblem&, const KernelConfig&, const LaunchPlan*);

double shifted_wgrad_least(const WorkProblem& problem, const KernelConfig& c, const WorkColumns&) {
    return us_of(shifted_wgrad_least_cycles(problem.view.problem, c, problem.arch), problem, c);
}

}  // namespace tilewise
