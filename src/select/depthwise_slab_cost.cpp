// SPDX-License-Identifier: MIT
#include "select/depthwise_slab_cost.hpp"

#include <limits>

#include "family/cuda/channel_slice_plan.hpp"
#include "select/gpu_clock.hpp"

namespace tilewise {

double predicted_slab_us(const Problem& p, const KernelConfig& c, const ArchSpec& arch) {
    const auto plan = channel_slice_plan(p, c, arch);
    return plan ? plan->cycles / kCyclesPerUs + arch.launch_us : std::numeric_limits<double>::infinity();
}

}  // namespace tilewise
