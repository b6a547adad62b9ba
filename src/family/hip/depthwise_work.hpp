// SPDX-License-Identifier: MIT
// The work of depthwise convolutions on AMD GPUs: the instructions of all outputs over the units that have blocks, or the bytes of the
// tensors. No card has been asked.
#pragma once

#include "family/launch_plan.hpp"
#include "family/work_problem.hpp"

namespace tilewise {

template <class N>
N hip_depthwise_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);

}  // namespace tilewise
