// SPDX-License-Identifier: MIT
// The work of products on AMD's matrix units: a step of a block takes as long as its products, its reads of shared memory or its loads;
// then come cache, memory, and rounds of tiles over the units. The prices are from datasheets, and no card has been asked.
#pragma once

#include "family/launch_plan.hpp"
#include "family/work_problem.hpp"

namespace tilewise {

// The product of a view that is cut into so many tiles.
template <class N>
N mfma_product_us(const GemmView& view, double tiles, const WorkProblem& problem, const KernelConfig& config);

template <class N>
N mfma_gemm_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);

}  // namespace tilewise
