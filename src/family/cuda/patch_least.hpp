// SPDX-License-Identifier: MIT
// The least times of convolutions by patches, whatever tile a plan has: products and operands that every tile takes, beside memory. They
// say which kernels need no plan.
#pragma once

#include "family/work_problem.hpp"

namespace tilewise {

double patch_conv_least(const WorkProblem& problem, const KernelConfig& config, const WorkColumns& columns);
double patch_wgrad_least(const WorkProblem& problem, const KernelConfig& config, const WorkColumns& columns);

}  // namespace tilewise
