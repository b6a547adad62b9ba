// SPDX-License-Identifier: MIT
// Times executables of one problem against each other, on operands of an arena. bench, tune, the strategy measure and sweeps all
// measure this way.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "device/device.hpp"
#include "measure/operand_arena.hpp"
#include "measure/short_timing.hpp"
#include "problem/problem.hpp"
#include "run/executable.hpp"

namespace tilewise {

struct KernelTime {
    Status status;  // the others count only where this is well
    double us = 0;
    double spread = 0;  // relative
    std::int64_t samples = 0;
    std::optional<double> us_again{};
};

// The options that suit a device: graphs of a fraction of a millisecond on a GPU; on a CPU, which other programs share, longer blocks.
ShortTimingOptions usual_timing(const Device& device);

// One result for each executable, in the order given. The arena and the device must outlive the call only.
Result<std::vector<KernelTime>> time_kernels(const Problem& problem,
                                             std::span<const std::shared_ptr<const Executable>> executables,
                                             Device& device, OperandArena& arena, ShortTimingOptions options);

}  // namespace tilewise
