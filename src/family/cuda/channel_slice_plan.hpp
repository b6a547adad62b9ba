// SPDX-License-Identifier: MIT
// How a depthwise CUDA kernel by slices (kernels/cuda/depthwise_channel_slice/depthwise_channel_slice.hpp) is cut for a problem: the
// rows and images of a tile, and the pieces of a row that threads take. What is fitted, the launch and the predicted time follow
// from one plan: the one that should take the least time.
#pragma once

#include <cstdint>
#include <optional>

#include "base/rejected.hpp"
#include "config/arch_spec.hpp"
#include "config/kernel_config.hpp"
#include "family/launch_plan.hpp"
#include "problem/problem.hpp"

namespace tilewise {

struct ChannelSlicePlan {
    std::int64_t images = 0, rows = 0;       // of a tile, of outputs
    std::int64_t bands = 0, tiles = 0;       // tiles of an image; of all images, for each tile of channels
    std::int64_t segments = 0, columns = 0;  // pieces of a row, and the outputs of one
    std::int64_t slice_rows = 0;             // rows of inputs that a tile meets
    std::int64_t shared_bytes = 0;           // of a block
    double cycles = 0;                       // of a unit, for everything
};

// The channels that each thread takes, and the rows of outputs.
int slice_vector(const KernelConfig& config);
int slice_own_rows(const KernelConfig& config);

// The plan of a config of the family depthwise_channel_slice that has a kernel; none where it does not fit the problem, and `why`
// then says so.
std::optional<ChannelSlicePlan> channel_slice_plan(const Problem& problem, const KernelConfig& config,
                                                   const ArchSpec& arch, Rejected* why = nullptr);

// The plan that a launch was made from.
ChannelSlicePlan channel_slice_plan_of(const GpuGrid& grid);

// The cycles of a unit that the plan takes, by which it was chosen.
template <class N>
N channel_slice_cycles(const ChannelSlicePlan& plan, const Problem& problem, const KernelConfig& config,
                       const ArchSpec& arch);

}  // namespace tilewise
