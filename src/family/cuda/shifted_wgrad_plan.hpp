// SPDX-License-Identifier: MIT
// How backward weight by shifted runs of positions (gather=halo on warpgroup products,
// kernels/cuda/shifted_wgrad/shifted_wgrad.hpp) is cut for a problem: lines of channels, copies and stages, and the parts of the
// reduction. What is fitted, how much workspace that takes and the launch all follow from one plan. With two_stage the number of
// parts is the plan's; without, a cluster of split_k blocks has all.
#pragma once

#include <cstdint>
#include <optional>

#include "base/rejected.hpp"
#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "family/launch_plan.hpp"
#include "kernels/common/shifted_wgrad_args.hpp"
#include "problem/problem.hpp"

namespace tilewise {

struct ShiftedWgradPlan {
    ShiftedWgradArgs shape;
    std::int64_t products;  // blocks of each part
    int parts;
    double cycles;  // of a unit, for everything
};

// The extents of a block's results: (tap, c), which are the products' rows with swap_ab, and k.
int shifted_wgrad_rows(const KernelConfig& config);
int shifted_wgrad_columns(const KernelConfig& config);
// The plan of a config of the family shifted_wgrad; none where it does not fit the problem, and `why` then says so.
std::optional<ShiftedWgradPlan> shifted_wgrad_plan(const Problem& problem, const KernelConfig& config,
                                                   const ArchSpec& arch, Rejected* why = nullptr);

// The cycles of a unit that no plan falls below; infinite where there is none.
double shifted_wgrad_least_cycles(const Problem& problem, const KernelConfig& config, const ArchSpec& arch);

// The plan that a launch was made from.
ShiftedWgradPlan shifted_wgrad_plan_of(const GpuGrid& grid);

// The cycles of a unit that the plan takes, by which it was chosen.
template <class N>
N shifted_wgrad_cycles(const ShiftedWgradPlan& plan, const Problem& problem, const KernelConfig& config,
                       const ArchSpec& arch);

}  // namespace tilewise
