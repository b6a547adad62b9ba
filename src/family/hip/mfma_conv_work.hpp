// SPDX-License-Identifier: MIT
// The work of convolutions on AMD's matrix units: a product (mfma_gemm_work.hpp) whose operands are looked up. The prices are guesses from
// instruction counts, and no card has been asked.
#pragma once

#include "family/launch_plan.hpp"
#include "family/work_problem.hpp"

namespace tilewise {

template <class N>
N mfma_conv_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);

}  // namespace tilewise
