// SPDX-License-Identifier: MIT
// Many problems × many kernels → records. This is the parent of a sweep: it plans, builds, hands out problems to a worker process and
// alone writes what comes of them, each record by one append. A kernel that crashes or hangs costs its own record; after three in
// one problem the rest of that is skipped.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/arch_catalog.hpp"
#include "measure/record.hpp"
#include "sweep/sweep_plan.hpp"

namespace tilewise {

struct SweepProgress {
    std::size_t problems_done = 0, problems = 0;
    std::size_t records = 0;
    double seconds = 0;
};

struct SweepOptions {
    std::vector<SweepProblem> problems;  // distinct
    std::string set;                     // "NAME@HASH" of them all, shard or not
    std::string out;
    bool resume = false;
    Shard shard;
    PoolOptions pool;
    int workers = 1;                                  // compilers at a time
    std::optional<std::chrono::milliseconds> budget;  // of the whole sweep
    std::chrono::milliseconds timeout = std::chrono::seconds(60);
    std::vector<std::string> packs;
    std::vector<std::string> worker;  // the command that serves as one
    std::function<void(const SweepProgress&)> progress;
    std::function<void(const std::string&)> say;  // what a user should know while it runs
};

struct SweepSummary {
    std::string device;
    std::size_t problems = 0;         // that were measured, as far as they could be
    std::size_t without_kernels = 0;  // no kernel may run them
    std::array<std::size_t, EnumNames<RecordStatus>::names.size()> records{};  // written now, by status
    std::size_t kept = 0;                                                      // that were there before
    std::size_t left_out = 0;                                                  // for lack of time, of those skipped
    double seconds = 0;
    std::optional<double> reference_us, reference_drift;  // the last, and how far from the first
};

Result<SweepSummary> run_sweep(const SweepOptions& options, const ArchCatalog& archs);

}  // namespace tilewise
