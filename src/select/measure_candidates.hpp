// SPDX-License-Identifier: MIT
// Times a few kernels on a problem, on scratch tensors of its own, in turns. Kernels that cannot be built or run are left
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
#include "measure/record.hpp"
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
    std::vector<Note> notes{};  // of its executable
};
struct Failed {
    KernelPtr kernel;
    std::string reason;
    RecordStatus status = RecordStatus::launch;
};
struct MeasureOutcome {
    std::vector<Measured> measured;  // fastest first
    std::vector<Failed> failed;
    std::vector<Note> notes;  // about recording them
};

// Told before each step: steps done, steps in all, and what comes now.
using MeasureProgress = std::function<void(std::size_t done, std::size_t total, std::string_view doing)>;

struct MeasureOptions {
    double seconds_each = 0.05;                      // of timing, for each kernel
    std::int64_t max_bytes = std::int64_t{1} << 30;  // of scratch tensors; a larger problem is timed on one set of them
    MeasureProgress progress{};
    const RecordStore* records = nullptr;  // null: nothing is recorded
};
Result<MeasureOutcome> measure_candidates(const Problem& problem, const KernelList& kernels, Device& device,
                                          Builder& builder, const MeasureOptions& options = {});

}  // namespace tilewise
