// SPDX-License-Identifier: MIT
// Times a few kernels on a problem, on operands of an arena, in turns. Kernels that cannot be built or run are left
// out with the reason. Whatever comes of a kernel is recorded.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/note.hpp"
#include "base/result.hpp"
#include "build/builder.hpp"
#include "device/device.hpp"
#include "measure/operand_arena.hpp"
#include "measure/record.hpp"
#include "measure/short_timing.hpp"
#include "problem/problem.hpp"
#include "registry/registry.hpp"
#include "select/record_store.hpp"

namespace tilewise {

// Times that vary more than this say little.
inline constexpr double kMostSpread = 0.1;

struct Measured {
    KernelPtr kernel;
    std::string code_digest;
    double us = 0;
    double spread = 0;  // relative
    std::int64_t samples = 0;
    std::optional<double> us_again{};  // by a second timing, where it was among the fastest
    std::vector<Note> notes{};         // of its executable

    // The best that is known: of two timings the mean.
    double settled_us() const { return us_again ? (us + *us_again) / 2 : us; }
};
struct Failed {
    KernelPtr kernel;
    std::string reason;
    RecordStatus status = RecordStatus::crash;
};
struct MeasureOutcome {
    std::vector<Measured> measured;  // fastest first
    std::vector<Failed> failed;
    std::vector<Note> notes;  // about recording them
};

// Told before each step: steps done, steps in all, and what comes now.
using MeasureProgress = std::function<void(std::size_t done, std::size_t total, std::string_view doing)>;

struct MeasureOptions {
    std::optional<ShortTimingOptions> timing{};  // unset: what suits the device
    MeasureProgress progress{};
    const RecordStore* records = nullptr;  // null: nothing is recorded
    OperandArena* arena = nullptr;         // of the device, kept by who measures often; null: one for this call
};

// By the analytic model, for the problem as it is; unset where the kernel cannot run that.
std::optional<double> predicted_time(const Problem& problem, const Kernel& kernel, const Device& device);

Result<MeasureOutcome> measure_candidates(const Problem& problem, const KernelList& kernels, Device& device,
                                          Builder& builder, const MeasureOptions& options = {});

}  // namespace tilewise
