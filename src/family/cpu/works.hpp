// SPDX-License-Identifier: MIT
// The work of the CPU's families (base/work.hpp).
#pragma once

#include "family/launch_plan.hpp"
#include "family/work_problem.hpp"

namespace tilewise {

template <class N>
N blocked_gemm_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);
template <class N>
N blocked_conv_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);
template <class N>
N direct_conv_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);

}  // namespace tilewise
