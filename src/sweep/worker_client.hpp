// SPDX-License-Identifier: MIT
// The parent's side of the conversation with a worker (worker.hpp), which may crash or hang at any time: then another is started
// when one is next needed.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "measure/record.hpp"
#include "sweep/worker_process.hpp"

namespace tilewise {

using SweepClock = std::chrono::steady_clock;

// The outcome of one kernel.
struct WorkerResult {
    std::size_t kernel = 0;
    RecordStatus status = RecordStatus::ok;
    std::string reason{};
    double time_us = 0, spread = 0;
    std::int64_t samples = 0;
    std::optional<double> time2_us{}, max_error{};
};

// How a problem ended.
struct WorkerEnd {
    enum class Kind { done, crash, timeout, out_of_time } kind = Kind::done;
    std::optional<std::size_t> kernel{};  // that was in hand
    std::string reason{};
};

class WorkerClient {
public:
    WorkerClient(std::vector<std::string> argv, std::chrono::milliseconds timeout, SweepClock::time_point deadline)
        : argv_(std::move(argv)), timeout_(timeout), deadline_(deadline) {}

    // Starts a worker and returns how it describes its device.
    Result<Json> open();

    // Hands out one problem; `take` gets each result as it comes. An error is one of `take`, or that no worker can be started.
    Result<WorkerEnd> measure(const std::string& problem, const std::vector<std::string>& kernels,
                              const std::function<Status(const WorkerResult&)>& take);
    // Nothing where it could not be timed.
    Result<std::optional<double>> time_reference(const std::string& problem, const std::string& kernel);

private:
    Status ensure();
    WorkerProcess::Wait receive(Json& json, SweepClock::time_point deadline);
    WorkerEnd lost(WorkerProcess::Wait wait, std::optional<std::size_t> kernel, const std::string& said);

    std::vector<std::string> argv_;
    std::chrono::milliseconds timeout_;
    SweepClock::time_point deadline_;  // of the whole sweep
    std::unique_ptr<WorkerProcess> process_;
    Json description_;
};

}  // namespace tilewise
