// SPDX-License-Identifier: MIT
// How forward and backward data by shifted runs of positions (gather=halo on warpgroup products, kernels/cuda/resident_filter_conv) are cut
// for a problem: positions, lines of channels, stages, and who shares the runs of a group. What is fitted, the launch and its cost
// (family/cuda/resident_filter_work.cpp) follow from one plan.
#pragma once

#include <cstdint>
#include <optional>

#include "base/rejected.hpp"
#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "family/launch_plan.hpp"
#include "kernels/common/resident_filter_conv_args.hpp"
#include "problem/problem.hpp"

namespace tilewise {

struct ResidentFilterPlan {
    ResidentFilterConvArgs shape;
    int blocks;
    std::int64_t weight_bytes, shared_bytes;  // of a block; with all stages
};

// The plan of a config of the family resident_filter_conv; none where it does not fit the problem, and `why` then says so.
std::optional<ResidentFilterPlan> resident_filter_plan(const Problem& problem, const KernelConfig& config,
                                                       const ArchSpec& arch, Rejected* why = nullptr);

// The plan that a launch was made from.
ResidentFilterPlan resident_filter_plan_of(const GpuGrid& grid, const KernelConfig& config);

}  // namespace tilewise
