// SPDX-License-Identifier: MIT
// The work of the CUDA families (base/work.hpp). Those that search for their plan count what is in it.
#pragma once

#include "family/launch_plan.hpp"
#include "family/work_problem.hpp"

namespace tilewise {

// mma_gemm, simt_gemm, fp64_gemm and wgmma_gemm.
template <class N>
N block_gemm_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);
template <class N>
N gemv_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);
template <class N>
N gemv_rows_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);
// mma_conv and simt_conv.
template <class N>
N gather_conv_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);
template <class N>
N col2im_conv_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);
template <class N>
N im2col_conv_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);
// patch_conv and patch_box_conv.
template <class N>
N patch_conv_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);
template <class N>
N first_layer_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);
template <class N>
N resident_filter_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);
template <class N>
N patch_wgrad_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);
template <class N>
N shifted_wgrad_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);
double shifted_wgrad_least(const WorkProblem& problem, const KernelConfig& config, const WorkColumns& columns);
template <class N>
N depthwise_any_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);
template <class N>
N depthwise_strips_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);
template <class N>
N depthwise_slice_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);
// depthwise_toeplitz and depthwise_block_diagonal.
template <class N>
N depthwise_matrix_work(const WorkProblem& problem, const KernelConfig& config, const LaunchPlan* searched);

}  // namespace tilewise
