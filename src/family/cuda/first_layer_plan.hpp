// SPDX-License-Identifier: MIT
// How forward of first layers (gather=halo and one element of x at a time; kernels/cuda/first_layer_conv/first_layer_conv.hpp) is
// cut for a problem: the tile of output pixels, and the blocks that share the tiles. Fit, launch and cost follow from one plan.
#pragma once

#include <optional>

#include "base/rejected.hpp"
#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "family/launch_plan.hpp"
#include "kernels/common/first_layer_conv_args.hpp"
#include "problem/problem.hpp"

namespace tilewise {

struct FirstLayerPlan {
    FirstLayerConvArgs launch;
    int blocks;
    double cycles;  // of a unit, for everything
};

// The plan of a config of the family first_layer_conv; none where it does not fit the problem, and `why` then says so.
std::optional<FirstLayerPlan> first_layer_plan(const Problem& problem, const KernelConfig& config, const ArchSpec& arch,
                                               Rejected* why = nullptr);

// The plan that a launch was made from.
FirstLayerPlan first_layer_plan_of(const GpuGrid& grid);

// The cycles of a unit that the plan takes, by which it was chosen.
template <class N>
N first_layer_cycles(const FirstLayerPlan& plan, const KernelConfig& config, const ArchSpec& arch);

}  // namespace tilewise
