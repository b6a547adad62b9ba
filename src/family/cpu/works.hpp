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

// The least times of blocked products: their multiply-adds beside memory. The column is the time of one of them.
WorkColumns blocked_gemm_columns(const KernelConfig& config, const ArchSpec& arch);
double blocked_gemm_least(const WorkProblem& problem, const KernelConfig& config, const WorkColumns& columns);
WorkColumns blocked_conv_columns(const KernelConfig& config, const ArchSpec& arch);
double blocked_conv_least(const WorkProblem& problem, const KernelConfig& config, const WorkColumns& columns);

}  // namespace tilewise
